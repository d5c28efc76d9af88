import { DecryptCommand, EncryptCommand, KMSClient } from "@aws-sdk/client-kms";
import { type Call, SandboxError } from "@turnbox/core";
import { DATA_KEY_BYTES, DataKey } from "../data-key.ts";
import type { KeyContext, KeyWrap, WrappedKey } from "../key-wrap.ts";

const PREFIX = "kms:";
const MAX_ATTEMPTS = 4;
const CONNECTION_TIMEOUT_MS = 5000;
const REQUEST_TIMEOUT_MS = 15_000;

/** The key is not there, or may not be used by these credentials or at all. */
const WRONG_KEY = new Set([
  "AccessDeniedException",
  "DisabledException",
  "IncorrectKeyException",
  "InvalidArnException",
  "InvalidKeyUsageException",
  "KMSInvalidStateException",
  "KeyUnavailableException",
  "NotFoundException",
]);
const DAMAGED = new Set(["InvalidCiphertextException"]);

export interface KmsClientOptions {
  readonly region?: string;
  readonly endpoint?: string;
  readonly maxAttempts?: number;
}

/** A client of KMS with time limits. Credentials are found as the SDK finds them. */
export function createKmsClient({ region, endpoint, maxAttempts = MAX_ATTEMPTS }: KmsClientOptions): KMSClient {
  return new KMSClient({
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
    retryMode: "standard",
    maxAttempts,
    requestHandler: {
      connectionTimeout: CONNECTION_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      throwOnRequestTimeout: true,
    },
  });
}

export interface KmsKeyWrapOptions {
  readonly client: KMSClient;
  /** The key that wraps: its id, ARN or alias. Others unwrap what they have wrapped, if the credentials allow it. */
  readonly key: string;
}

/** Wraps by AWS KMS. The context is the encryption context, which KMS authenticates and writes into its log. */
export class KmsKeyWrap implements KeyWrap {
  readonly kind = "kms";
  readonly #client: KMSClient;
  readonly #key: string;

  constructor({ client, key }: KmsKeyWrapOptions) {
    this.#client = client;
    this.#key = key;
  }

  async wrap(key: DataKey, context: KeyContext, { signal }: Call): Promise<WrappedKey> {
    signal.throwIfAborted();
    const plain = key.reveal();
    const command = new EncryptCommand({
      KeyId: this.#key,
      Plaintext: plain,
      EncryptionContext: encodeContext(context),
    });
    try {
      const { KeyId, CiphertextBlob } = await this.#client.send(command, { abortSignal: signal });
      if (KeyId === undefined || CiphertextBlob === undefined) throw new Error("KMS answered without a key");
      return { keyId: `${PREFIX}${KeyId}`, bytes: CiphertextBlob };
    } catch (failure) {
      throw kmsFailure(failure, `${PREFIX}${this.#key}`, signal);
    } finally {
      plain.fill(0);
    }
  }

  async unwrap({ keyId, bytes }: WrappedKey, context: KeyContext, { signal }: Call): Promise<DataKey> {
    signal.throwIfAborted();
    if (!keyId.startsWith(PREFIX))
      throw new SandboxError("ARCHIVE_KEY_WRONG", `the key ${keyId} is needed, which is none of KMS`, {
        metadata: { keyId },
      });
    const key = keyId.slice(PREFIX.length);
    const command = new DecryptCommand({
      KeyId: key,
      CiphertextBlob: bytes,
      EncryptionContext: encodeContext(context),
    });
    try {
      const { Plaintext: plain } = await this.#client.send(command, { abortSignal: signal });
      if (plain?.byteLength !== DATA_KEY_BYTES) throw new Error("KMS answered without a data key");
      const dataKey = new DataKey(plain);
      plain.fill(0);
      return dataKey;
    } catch (failure) {
      throw kmsFailure(failure, keyId, signal);
    }
  }
}

const encodeContext = ({ tenant, kind, id, format }: KeyContext): Record<string, string> => ({
  purpose: "turnbox-archive",
  format: String(format),
  tenant,
  kind,
  id,
});

/** What a failed call of KMS means. The reason of an aborted signal passes as it is. */
function kmsFailure(failure: unknown, keyId: string, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  const name = failure instanceof Error ? failure.name : "Unknown";
  const more = { metadata: { keyId, code: name }, cause: failure };
  if (WRONG_KEY.has(name))
    return new SandboxError("ARCHIVE_KEY_WRONG", `the key ${keyId} is needed, and KMS says ${name}`, more);
  if (DAMAGED.has(name))
    return new SandboxError(
      "ARCHIVE_DAMAGED",
      `the data key that is wrapped by ${keyId} was changed, or was wrapped for another owner`,
      { ...more, metadata: { ...more.metadata, fault: "wrapped key" } },
    );
  return new SandboxError("ARCHIVE_KEY_UNAVAILABLE", `KMS could not use the key ${keyId}: ${name}`, more);
}
