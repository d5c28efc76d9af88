import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, statSync } from "node:fs";
import path from "node:path";
import { SandboxError } from "../error/sandbox-error.ts";
import { createOnce, writeDraft } from "../file/create-once.ts";
import { readIfThere } from "../file/read-if-there.ts";
import { Secret } from "../secret/secret.ts";

export interface KeyFileOptions {
  /** Told of a secret file that others than its owner may read. The file is used all the same. */
  readonly onLooseMode?: (file: string, mode: number) => void;
}

export interface SigningKeys {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  /** The file to hand to hosts; it holds no secret. */
  readonly publicKeyPath: string;
}

/**
 * The signing keys of a fleet: `signing-key.pem` (mode 0600) in `folder`, made once, and the public half beside it for
 * others to read. Reads and writes synchronously: it is for the start of a service.
 */
export function loadOrCreateSigningKeys(folder: string, options: KeyFileOptions = {}): SigningKeys {
  const file = path.join(folder, "signing-key.pem");
  const publicKeyPath = path.join(folder, "signing-key.pub.pem");
  const pem = readOrCreate(file, options, () =>
    generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  );
  const privateKey = parseKey(file, () => createPrivateKey(pem));
  const publicKey = createPublicKey(privateKey);
  const publicPem = publicKey.export({ type: "spki", format: "pem" }).toString();
  if (readIfThere(publicKeyPath) !== publicPem) {
    renameSync(writeDraft(publicKeyPath, { content: publicPem, mode: 0o644 }), publicKeyPath);
  }
  return { privateKey, publicKey, publicKeyPath };
}

/** The public keys in a PEM file, one or several. */
export function loadPublicKeys(file: string): readonly KeyObject[] {
  const blocks = (readIfThere(file) ?? "").match(/-----BEGIN PUBLIC KEY-----[^-]+-----END PUBLIC KEY-----/g) ?? [];
  if (blocks.length === 0) throw new SandboxError("CONFIG_INVALID", `${file} holds no public key`);
  return blocks.map((block) => parseKey(file, () => createPublicKey(block)));
}

/** The token of a home: 32 random bytes in a file of mode 0600, made once. */
export function loadOrCreateHomeToken(file: string, options: KeyFileOptions = {}): Secret {
  const token = readOrCreate(file, options, () => `${randomBytes(32).toString("base64url")}\n`).trim();
  if (!/^[A-Za-z0-9_-]{32,}$/.test(token)) {
    throw new SandboxError("CONFIG_INVALID", `${file} holds no token; remove it and a new one is made`);
  }
  return new Secret(token);
}

function readOrCreate(file: string, options: KeyFileOptions, make: () => string): string {
  const present = readIfThere(file);
  if (present === undefined) {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    createOnce(file, { content: make(), mode: 0o600 });
  }
  const mode = statSync(file).mode & 0o777;
  if ((mode & 0o077) !== 0) options.onLooseMode?.(file, mode);
  return present ?? readFileSync(file, "utf8");
}

function parseKey(file: string, parse: () => KeyObject): KeyObject {
  let key: KeyObject | undefined;
  try {
    key = parse();
  } catch (cause) {
    throw new SandboxError("CONFIG_INVALID", `${file} holds no readable key`, { cause });
  }
  if (key.asymmetricKeyType !== "ed25519") throw new SandboxError("CONFIG_INVALID", `${file} must hold an Ed25519 key`);
  return key;
}
