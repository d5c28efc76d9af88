import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

interface KmsRequest {
  readonly KeyId: string;
  readonly Plaintext?: string;
  readonly CiphertextBlob?: string;
  readonly EncryptionContext?: Readonly<Record<string, string>>;
}

type Answer = readonly [status: number, body: object];

/** What KMS does with Encrypt and Decrypt, as far as its manual says. */
export interface ScriptedKms extends AsyncDisposable {
  readonly url: string;
  /** Makes a key and returns its ARN. */
  addKey(): string;
  /** What each request is answered with instead. */
  fault: Answer | undefined;
}

export async function startScriptedKms(): Promise<ScriptedKms> {
  const keys = new Map<string, Buffer>();
  const server = createServer((request, response) => {
    readJson(request)
      .then((body) => kms.fault ?? answer(keys, String(request.headers["x-amz-target"]), body))
      .catch((): Answer => [500, { __type: "KMSInternalException" }])
      .then(
        ([status, body]) => {
          response.writeHead(status, { "content-type": "application/x-amz-json-1.1" }).end(JSON.stringify(body));
        },
        () => response.destroy(),
      );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const kms: ScriptedKms = {
    url: `http://127.0.0.1:${port}`,
    fault: undefined,
    addKey: () => {
      const arn = `arn:aws:kms:eu-central-1:123456789012:key/${randomBytes(16).toString("hex")}`;
      keys.set(arn, randomBytes(32));
      return arn;
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return kms;
}

function answer(keys: ReadonlyMap<string, Buffer>, target: string, body: KmsRequest): Answer {
  const key = keys.get(body.KeyId);
  if (key === undefined) return [400, { __type: "NotFoundException", message: "no such key" }];
  const context = JSON.stringify(Object.entries(body.EncryptionContext ?? {}).toSorted());
  if (target === "TrentService.Encrypt") {
    const nonce = randomBytes(12);
    const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(context));
    const encrypted = Buffer.concat([cipher.update(Buffer.from(body.Plaintext ?? "", "base64")), cipher.final()]);
    const blob = Buffer.concat([fingerprint(key), nonce, encrypted, cipher.getAuthTag()]);
    return [200, { KeyId: body.KeyId, CiphertextBlob: blob.toString("base64") }];
  }
  const blob = Buffer.from(body.CiphertextBlob ?? "", "base64");
  const isKnown = [...keys.values()].some((one) => fingerprint(one).equals(blob.subarray(0, 8)));
  if (isKnown && !fingerprint(key).equals(blob.subarray(0, 8))) return [400, { __type: "IncorrectKeyException" }];
  try {
    const decipher = createDecipheriv("aes-256-gcm", key, blob.subarray(8, 20)).setAAD(Buffer.from(context));
    decipher.setAuthTag(blob.subarray(-16));
    const plain = Buffer.concat([decipher.update(blob.subarray(20, -16)), decipher.final()]);
    if (!isKnown) throw new Error("the blob names no key");
    return [200, { KeyId: body.KeyId, Plaintext: plain.toString("base64") }];
  } catch {
    return [400, { __type: "InvalidCiphertextException" }];
  }
}

const fingerprint = (key: Buffer): Buffer => createHash("sha256").update(key).digest().subarray(0, 8);

async function readJson(request: IncomingMessage): Promise<KmsRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString("utf8")) as KmsRequest;
}
