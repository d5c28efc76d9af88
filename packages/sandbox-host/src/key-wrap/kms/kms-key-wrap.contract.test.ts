import { afterAll, describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { DataKey } from "../data-key.ts";
import { keyWrapSuite } from "../key-wrap.suite.ts";
import { createKmsClient, KmsKeyWrap } from "./kms-key-wrap.ts";
import { startScriptedKms } from "./scripted-kms.suite.ts";

process.env["AWS_ACCESS_KEY_ID"] = "test";
process.env["AWS_SECRET_ACCESS_KEY"] = "test";

const kms = await startScriptedKms();
const other = await startScriptedKms();
const clientOf = (endpoint: string) => createKmsClient({ region: "eu-central-1", endpoint, maxAttempts: 1 });
const client = clientOf(kms.url);
const stranger = clientOf(other.url);

afterAll(async () => {
  client.destroy();
  stranger.destroy();
  await kms[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
});

keyWrapSuite("KMS", async () => ({
  wrap: new KmsKeyWrap({ client, key: kms.addKey() }),
  rotated: new KmsKeyWrap({ client, key: kms.addKey() }),
  stranger: new KmsKeyWrap({ client: stranger, key: other.addKey() }),
}));

describe("KmsKeyWrap", () => {
  const CONTEXT = { tenant: "t1", kind: "sandbox", id: "s1", format: 1 } as const;

  it.each<readonly [string, string]>([
    ["AccessDeniedException", "ARCHIVE_KEY_WRONG"],
    ["DisabledException", "ARCHIVE_KEY_WRONG"],
    ["ThrottlingException", "ARCHIVE_KEY_UNAVAILABLE"],
    ["KMSInternalException", "ARCHIVE_KEY_UNAVAILABLE"],
  ])("takes %s for %s", async (code, reason) => {
    const wrap = new KmsKeyWrap({ client, key: kms.addKey() });
    kms.fault = [400, { __type: code }];
    const thrown: unknown = await wrap
      .wrap(DataKey.random(), CONTEXT, { signal: new AbortController().signal })
      .catch((failure: unknown) => failure);
    kms.fault = undefined;
    expect(thrown).toBeInstanceOf(SandboxError);
    expect(thrown).toMatchObject({ reason, metadata: { code } });
  });

  it("refuses what a key file has wrapped", async () => {
    const wrap = new KmsKeyWrap({ client, key: kms.addKey() });
    const unwrapped = wrap.unwrap({ keyId: "file:1", bytes: Buffer.alloc(80) }, CONTEXT, {
      signal: new AbortController().signal,
    });
    await expect(unwrapped).rejects.toMatchObject({ reason: "ARCHIVE_KEY_WRONG", metadata: { keyId: "file:1" } });
  });
});
