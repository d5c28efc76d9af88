import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { CALL } from "./postgres-fixture.suite.ts";
import { type PostgresServer, startPostgresServer } from "./postgres-server.suite.ts";
import { openPostgresStore } from "./postgres-store.ts";

let folder: string;
let certificate: string;
let server: PostgresServer;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "turnbox-store-"));
  certificate = join(folder, "server.pem");
  const key = join(folder, "server.key");
  execFileSync("openssl", [
    ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"],
    ...["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
  ]);
  server = await startPostgresServer({ tls: { certificate, key } });
}, 120_000);

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const isEncrypted = async (parameters: string, host = "localhost"): Promise<void> => {
  const url = `${server.url.replace("127.0.0.1", host)}?${parameters}`;
  await using store = await openPostgresStore({ url, patienceMs: 500 }, CALL);
  await store.listInstances(CALL);
};

describe("sslmode", () => {
  it("verify-full takes a certificate of the root and of the name", async () => {
    await isEncrypted(`sslmode=verify-full&sslrootcert=${certificate}`);
  });

  it("verify-full refuses another name, which verify-ca takes", async () => {
    const root = `sslrootcert=${certificate}`;
    await expect(isEncrypted(`sslmode=verify-full&${root}`, "127.0.0.1")).rejects.toMatchObject({
      reason: "STORE_UNAVAILABLE",
    });
    await isEncrypted(`sslmode=verify-ca&${root}`, "127.0.0.1");
  });

  it("verify-full refuses a root that is not trusted, which require takes", async () => {
    await expect(isEncrypted("sslmode=verify-full")).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
    await isEncrypted("sslmode=require");
  });

  it("does not go on in plain text where the server has no TLS", async () => {
    await using plain = await startPostgresServer();
    await expect(
      openPostgresStore({ url: `${plain.url}?sslmode=require`, patienceMs: 500 }, CALL),
    ).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE", message: expect.stringContaining("SSL") });
  }, 120_000);
});
