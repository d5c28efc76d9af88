import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { poll } from "../support/process.ts";
import { startServer, type TestServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
}, 120_000);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
}, 120_000);

interface SeenProcess {
  readonly processId: string;
  readonly state: string;
  readonly address: string;
}

/** A sandbox with files to be served, and a web server launched in it; answers when it is ready. */
async function serve(name: string): Promise<SeenProcess> {
  await server.json("create", "--template", "mini", "--name", name);
  expect(await server.pipe(`from ${name}\n`, "write", name, "/workspace/index.html")).toMatchObject({ exitCode: 0 });
  const httpd = ["httpd", "-f", "-p", "8080", "-h", "/workspace"];
  const launched = await server.cli("run", name, "--detach", "--json", "--port", "8080", "--", ...httpd);
  expect(launched).toMatchObject({ exitCode: 0, stderr: "" });
  const { processId } = (JSON.parse(launched.stdout) as { readonly process: SeenProcess }).process;
  return await poll("the server to be ready", async () => {
    const processes = (await server.json("ps", name))["processes"] as readonly SeenProcess[];
    const process = processes.find((each) => each.processId === processId);
    if (process?.state === "exited") throw new Error("the server has ended");
    return process?.state === "running" ? process : undefined;
  });
}

describe("an HTTP server in a sandbox", () => {
  it("is reached from outside at its address with the token of its port, and not without it", async () => {
    const { address } = await serve("web");
    const { url, token } = await server.json("port", "web", "8080");
    expect(url).toBe(`http://${address}`);
    const answer = await fetch(`${String(url)}/index.html`, { headers: { authorization: `Bearer ${String(token)}` } });
    expect([answer.status, await answer.text()]).toEqual([200, "from web\n"]);
    expect((await fetch(`${String(url)}/index.html`)).status).toBe(401);

    // A second sandbox serves at the same port at the same time, at an address of its own.
    await serve("other");
    const other = await server.json("port", "other", "8080");
    expect(other["url"]).not.toBe(url);
    const second = await fetch(`${String(other["url"])}/index.html`, {
      headers: { "turnbox-port-token": String(other["token"]) },
    });
    expect(await second.text()).toBe("from other\n");
    const mixed = await fetch(`${String(url)}/index.html`, {
      headers: { "turnbox-port-token": String(other["token"]) },
    });
    expect(mixed.status).toBe(401);

    await server.json("rm", "web");
    await expect(fetch(`${String(url)}/index.html`)).rejects.toThrow();
  }, 300_000);
});
