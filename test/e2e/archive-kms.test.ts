import { afterAll, it } from "@jest/globals";
import { providePythonTools, startMoto } from "@turnbox/core/testing";
import { keyWrapSuite } from "../../packages/sandbox-host/src/key-wrap/key-wrap.suite.ts";
import { createKmsClient, KmsKeyWrap } from "../../packages/sandbox-host/src/key-wrap/kms/kms-key-wrap.ts";

const tools = await providePythonTools();

if (tools === undefined) it.skip("the KMS adapter against moto", () => undefined);
else await against(tools.python);

/** Two accounts of moto: what one has wrapped the other has no key for. */
async function against(python: string): Promise<void> {
  process.env["AWS_ACCESS_KEY_ID"] = "test";
  process.env["AWS_SECRET_ACCESS_KEY"] = "test";
  const [moto, other] = await Promise.all([startMoto(python), startMoto(python)]);
  const clients = [moto, other].map(({ url }) => createKmsClient({ region: "eu-central-1", endpoint: url }));
  const [client, stranger] = clients;
  if (client === undefined || stranger === undefined) throw new Error("there are two clients");
  afterAll(async () => {
    for (const one of clients) one.destroy();
    await moto[Symbol.asyncDispose]();
    await other[Symbol.asyncDispose]();
  });

  const newKey = async (url: string): Promise<string> => {
    const response = await fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/x-amz-json-1.1",
        "x-amz-target": "TrentService.CreateKey",
        authorization:
          "AWS4-HMAC-SHA256 Credential=test/20300101/eu-central-1/kms/aws4_request, SignedHeaders=host, Signature=0",
      },
      body: "{}",
    });
    const { KeyMetadata } = (await response.json()) as { readonly KeyMetadata: { readonly Arn: string } };
    return KeyMetadata.Arn;
  };

  keyWrapSuite("KMS of moto", async () => ({
    wrap: new KmsKeyWrap({ client, key: await newKey(moto.url) }),
    rotated: new KmsKeyWrap({ client, key: await newKey(moto.url) }),
    stranger: new KmsKeyWrap({ client: stranger, key: await newKey(other.url) }),
  }));
}
