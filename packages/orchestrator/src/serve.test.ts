import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { identifyProcess, SandboxError } from "@turnbox/core";
import { failureText, serve } from "./serve.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "turnbox-serve-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** Runs `serve` on a home of its own with a host that behaves as the script says. */
async function run(
  script: string,
  more: { readonly port?: number; readonly stop?: AbortSignal } = {},
): Promise<string> {
  const hostEntry = join(folder, "host.mjs");
  writeFileSync(hostEntry, script);
  let printed = "";
  await serve({
    home: join(folder, "home"),
    port: more.port ?? 0,
    hostEntry,
    print: (text) => {
      printed += text;
    },
    stop: more.stop ?? new AbortController().signal,
  });
  return printed;
}

async function until(isDone: () => boolean, what: string): Promise<void> {
  const giveUpAt = performance.now() + 10_000;
  while (!isDone()) {
    if (performance.now() > giveUpAt) throw new Error(`not within 10 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

const left = (): readonly string[] => readdirSync(join(folder, "home"));

describe("serve", () => {
  it("fails with the host's own reason and remedy, and leaves neither a record nor a lock", async () => {
    const failed = { event: "failed", reason: "RUNTIME_UNAVAILABLE", message: "no runsc", remedy: "install runsc" };
    const error = await run(`console.log(${JSON.stringify(JSON.stringify(failed))}); process.exitCode = 1;`).then(
      () => undefined,
      (thrown: unknown) => SandboxError.from(thrown),
    );
    expect(error).toMatchObject({ reason: "RUNTIME_UNAVAILABLE" });
    expect(error === undefined ? "" : failureText(error)).toBe(
      "RUNTIME_UNAVAILABLE: no runsc\nremedy: install runsc\n",
    );
    expect(left()).not.toContain("server.json");
    expect(left()).not.toContain("orchestrator.lock");
  });

  it("ends quietly when it is asked to before its host is ready", async () => {
    const stop = new AbortController();
    const marker = join(folder, "begun");
    const script = `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(marker)}, ""); setInterval(() => {}, 1000);`;
    const running = run(script, { stop: stop.signal });
    await until(() => existsSync(marker), "the host's begin");
    stop.abort();
    expect(await running).toBe("");
    expect(left()).not.toContain("orchestrator.lock");
  }, 20_000);

  it("says which process it is, and removes its record after its hosts have ended", async () => {
    const stop = new AbortController();
    const file = join(folder, "home", "server.json");
    const seen = join(folder, "seen");
    // An empty body is a message whose fields have their defaults.
    const script = `
      import { existsSync, writeFileSync } from "node:fs";
      import { createServer } from "node:http2";
      process.on("SIGTERM", () => {
        writeFileSync(${JSON.stringify(seen)}, String(existsSync(${JSON.stringify(file)})));
        process.exit(0);
      });
      const server = createServer((request, response) => {
        response.writeHead(200, { "content-type": "application/proto" });
        response.end();
      });
      server.listen(0, "127.0.0.1", () => {
        const url = "http://127.0.0.1:" + server.address().port;
        console.log(JSON.stringify({ event: "ready", url, pid: process.pid }));
      });`;
    const running = run(script, { stop: stop.signal });
    await until(() => existsSync(file), "the record");
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({
      url: expect.stringMatching(/^http:/),
      ...identifyProcess(process.pid),
    });
    stop.abort();
    expect(await running).toContain("turnbox ready http://");
    expect(readFileSync(seen, "utf8")).toBe("true");
    expect(left()).not.toContain("server.json");
    expect(left()).not.toContain("orchestrator.lock");
  }, 20_000);

  it("clears away the record of a server that was killed", async () => {
    mkdirSync(join(folder, "home"));
    writeFileSync(join(folder, "home", "home.json"), '{"version":1,"id":"abcdefgh"}');
    writeFileSync(join(folder, "home", "server.json"), '{"url":"http://127.0.0.1:1","pid":4194305}');
    await expect(run("process.exitCode = 1;")).rejects.toMatchObject({ reason: "HOST_UNREACHABLE" });
    expect(left()).not.toContain("server.json");
  });

  it("names a port that is taken before it starts any host", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => taken.once("listening", resolve));
    const address = taken.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const marker = join(folder, "begun");
    try {
      await expect(
        run(`import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(marker)}, "");`, { port }),
      ).rejects.toMatchObject({ reason: "PORT_IN_USE" });
    } finally {
      await new Promise((resolve) => taken.close(resolve));
    }
    expect(readdirSync(folder)).not.toContain("begun");
  });

  it("does not take over a folder that is not a home", async () => {
    mkdirSync(join(folder, "home"));
    writeFileSync(join(folder, "home", "thesis.txt"), "");
    await expect(run("")).rejects.toMatchObject({ reason: "CONFIG_INVALID" });
    expect(left()).toEqual(["thesis.txt"]);
  });
});
