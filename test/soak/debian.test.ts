import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { startServer, type TestServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
}, 120_000);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
}, 120_000);

it("builds a Debian template with debootstrap that has what agents expect", async () => {
  const built = await server.cli("template", "build", "debian");
  expect(built).toMatchObject({ exitCode: 0 });
  const { sandboxId } = await server.json("create", "--template", "debian");
  const script =
    "for program in git python3 curl rg; do command -v $program; done; ls /etc/ssl/certs/ca-certificates.crt; python3 -c 'print(6 * 7)'";
  const ran = await server.cli("exec", String(sandboxId), "--no-stdin", "--", "sh", "-c", script);
  expect(ran).toMatchObject({ exitCode: 0, stderr: "" });
  expect(ran.stdout).toBe(
    "/usr/bin/git\n/usr/bin/python3\n/usr/bin/curl\n/usr/bin/rg\n/etc/ssl/certs/ca-certificates.crt\n42\n",
  );
}, 900_000);
