import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { PERL } from "../program.ts";
import { HelperGone, HelperRefusal } from "./helper.ts";
import { HelperProcess } from "./helper-process.ts";

const order = { env: { PATH: "/usr/bin:/bin" }, cwd: undefined, outputPath: undefined, maxOutputBytes: 1000 };

describe("the helper process", () => {
  let helper: HelperProcess;
  let directory: string;
  beforeEach(async () => {
    helper = new HelperProcess();
    directory = await mkdtemp(join(tmpdir(), "helper-"));
  });
  afterEach(async () => {
    helper[Symbol.dispose]();
    await rm(directory, { recursive: true });
  });
  const pidOfHelper = async (): Promise<number> => {
    const end = await helper.run({ ...order, argv: ["sh", "-c", "echo $PPID"] })?.ended;
    return Number(end?.stdout.toString());
  };

  it("runs many programs at once", async () => {
    const ends = Array.from({ length: 40 }, (_, index) =>
      helper.run({ ...order, argv: ["sh", "-c", `echo ${String(index)}; exit ${String(index)}`] }),
    );
    for (const [index, program] of ends.entries()) {
      const end = await program?.ended;
      expect([end?.status, end?.stdout.toString()]).toEqual([index * 256, `${String(index)}\n`]);
    }
  });

  it.each([
    ["prints", 'print "@ARGV in $ENV{PLACE}"', [0, "a b in here", ""]],
    ["becomes another program", "exec @ARGV[0, 1] or die", [0, "b\n", ""], ["echo", "b"]],
    ["leaves with a code", "exit 3", [3 * 256, "", ""]],
    ["dies with its reason", 'die "no way\n"', [255 * 256, "", "no way\n"]],
    ["is no script", "my (", [255 * 256, "", expect.stringContaining("syntax error")]],
  ])("runs a script that %s as any other program", async (_what, script, expected, args = ["a", "b"]) => {
    const spec = { ...order, env: { ...order.env, PLACE: "here" }, argv: [PERL, "-e", script, ...args] };
    const end = await helper.run(spec)?.ended;
    expect([end?.status, end?.stdout.toString(), end?.stderr.toString()]).toEqual(expected);
  });

  it("says why nothing has run", async () => {
    for (const [spec, code] of [
      [{ argv: ["/nonexistent"] }, "ENOENT"],
      [{ argv: ["true"], cwd: "/nonexistent" }, "ENOENT"],
      [{ argv: ["/etc/passwd"] }, "EACCES"],
    ] as const)
      await expect(helper.run({ ...order, ...spec })?.ended).rejects.toMatchObject({ code });
  });

  it("passes open files with a message, and returns the reply as soon as it is whole", async () => {
    const filePath = join(directory, "file");
    const socketPath = join(directory, "socket");
    await writeFile(filePath, "");
    const lines: Socket[] = [];
    await using server = createServer((line) => {
      lines.push(line);
      line.once("data", (message: Buffer) => {
        line.write(`{"half of": "${message.toString()}`);
        setTimeout(() => line.write('"}\n'), 20);
      });
    });
    await new Promise<void>((resolve) => server.listen(socketPath, resolve));
    const answer = await helper.send({ socketPath, message: "question", files: [{ path: filePath, mode: "w" }] });
    expect(answer).toBe('{"half of": "question"}');
    await until(() => lines.every((line) => line.destroyed || line.readableEnded));
    expect(await readFile(filePath, "utf8")).toBe("");
  });

  it.each([
    ["garbage", "<html>", "no object"],
    ["no end", `{"a":"${"x".repeat(100 * 1024 * 1024)}`, "too long"],
  ])("closes a connection on which %s comes back, and goes on", async (what, sent, expected) => {
    const socketPath = join(directory, `socket-${what.replace(" ", "-")}`);
    const lines: Socket[] = [];
    await using server = createServer((line) => {
      lines.push(line);
      line.on("error", () => undefined);
      line.resume();
      line.write(sent);
    });
    await new Promise<void>((resolve) => server.listen(socketPath, resolve));
    await expect(helper.send({ socketPath, message: "x", files: [] })).rejects.toThrow(expected);
    await until(() => lines.every((line) => line.destroyed || line.readableEnded));
    expect((await helper.run({ ...order, argv: ["true"] })?.ended)?.status).toBe(0);
  });

  it("closes a connection on which nothing comes back when the signal aborts", async () => {
    const socketPath = join(directory, "socket-silent");
    const lines: Socket[] = [];
    await using server = createServer((line) => {
      lines.push(line);
      line.on("error", () => undefined);
      line.resume();
    });
    await new Promise<void>((resolve) => server.listen(socketPath, resolve));
    const gaveUp = new AbortController();
    const asked = helper.send({ socketPath, message: "x", files: [], signal: gaveUp.signal });
    await until(() => lines.length === 1);
    gaveUp.abort();
    await expect(asked).rejects.toThrow("abort");
    await until(() => lines.every((line) => line.destroyed || line.readableEnded));
  });

  it("refuses to send what cannot be opened, and to a socket that does not exist", async () => {
    const send = (socketPath: string, path: string): Promise<string> | undefined =>
      helper.send({ socketPath, message: "x", files: [{ path, mode: "r" }] });
    await expect(send(join(directory, "missing"), "/dev/null")).rejects.toMatchObject({ code: "ENOENT" });
    await expect(send(join(directory, "missing"), "/nonexistent")).rejects.toBeInstanceOf(HelperRefusal);
  });

  it("that dies leaves its orders unknown, and is not there for a while", async () => {
    const waiting = helper.run({ ...order, argv: ["sleep", "1000"] });
    const [pid, sleeper] = [await pidOfHelper(), await pidOf("sleep 1000")];
    process.kill(pid, "SIGKILL");
    await expect(waiting?.ended).rejects.toBeInstanceOf(HelperGone);
    expect(helper.run({ ...order, argv: ["true"] })).toBeUndefined();
    process.kill(sleeper, "SIGKILL");
  });

  it("ends with the service, and leaves programs to themselves", async () => {
    const outputPath = join(directory, "out");
    const pid = await pidOfHelper();
    const program = helper.run({ ...order, outputPath, argv: ["sh", "-c", "echo $$; exec sleep 1001"] });
    program?.ended.catch(() => undefined);
    await until(async () => (await readFile(outputPath, "utf8").catch(() => "")) !== "");
    helper[Symbol.dispose]();
    await until(async () => !(await isAlive(pid)));
    const left = Number(await readFile(outputPath, "utf8"));
    expect(await isAlive(left)).toBe(true);
    process.kill(left, "SIGKILL");
  });

  it("does nothing if there is no perl, or the processor is not known", () => {
    for (const options of [{ perlPath: "/nonexistent" }, { arch: "vax" }]) {
      using none = new HelperProcess(options);
      expect(none.run({ ...order, argv: ["true"] })).toBeUndefined();
      expect(none.send({ socketPath: "/x", message: "", files: [] })).toBeUndefined();
    }
  });

  async function pidOf(line: string): Promise<number> {
    let pid = 0;
    await until(async () => {
      const end = await helper.run({ ...order, argv: ["pgrep", "-n", "-x", "-f", line] })?.ended;
      pid = Number(end?.stdout.toString());
      return pid > 0;
    });
    return pid;
  }
});

async function isAlive(pid: number): Promise<boolean> {
  return !/^\d+ \(.*\) Z|^$/.test(await readFile(`/proc/${String(pid)}/stat`, "utf8").catch(() => ""));
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 5000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error("the condition did not come true in time");
    await delay(10);
  }
}
