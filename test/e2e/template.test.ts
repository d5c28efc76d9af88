import { mkdtemp, mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { run } from "../support/process.ts";
import { startServer, type TestServer } from "../support/server.ts";

let server: TestServer;
let directory: string;
beforeAll(async () => {
  server = await startServer();
  directory = await mkdtemp(join(tmpdir(), "turnbox-template-"));
}, 120_000);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
}, 120_000);

/** A root filesystem with busybox and bash, changed by the test, as an archive. */
async function archive(
  name: string,
  change: (root: string) => Promise<void>,
  ...tarArgs: readonly string[]
): Promise<string> {
  const root = join(directory, name);
  await mkdir(join(root, "bin"), { recursive: true });
  for (const [from, to] of [
    ["/bin/busybox", "busybox"],
    ["/bin/bash-static", "bash"],
  ] as const) {
    await run("cp", [from, join(root, "bin", to)]);
  }
  for (const applet of ["sh", "ls", "cat", "id"]) await symlink("busybox", join(root, "bin", applet));
  await change(root);
  const file = join(directory, `${name}.tar`);
  const packed = await run("tar", ["-C", root, "-cf", file, ...tarArgs, "."]);
  if (packed.exitCode !== 0) throw new Error(packed.stderr);
  return file;
}
const refusal = async (name: string, file: string): Promise<Record<string, unknown>> => {
  const { stdout, exitCode } = await server.cli("template", "import", name, file, "--json");
  expect(exitCode).not.toBe(0);
  return (JSON.parse(stdout) as { error: Record<string, unknown> }).error;
};

describe("template import", () => {
  it("makes a version by content: the same archive again is the same one, another content another", async () => {
    const first = await archive("one", (root) => writeFile(join(root, "marker"), "one"));
    const imported = await server.json("template", "import", "mine", first);
    expect(await server.json("template", "import", "mine", first)).toMatchObject({ digest: imported["digest"] });
    const id = String((await server.json("create", "--template", "mine"))["sandboxId"]);
    const layout = "cat /marker; ls -d /workspace /proc /sys /dev /tmp /run; pwd";
    const seen = await server.cli("exec", id, "--no-stdin", "--", "sh", "-c", layout);
    expect(seen.stdout).toBe("one/dev\n/proc\n/run\n/sys\n/tmp\n/workspace\n/workspace\n");

    const second = await archive("two", (root) => writeFile(join(root, "marker"), "two"));
    const newer = await server.json("template", "import", "mine", second);
    expect(newer["digest"]).not.toBe(imported["digest"]);
    const latest = String((await server.json("create", "--template", "mine"))["sandboxId"]);
    expect((await server.cli("exec", latest, "--no-stdin", "--", "cat", "/marker")).stdout).toBe("two");
    const pinned = `mine@${String(imported["digest"]).slice(0, 12)}`;
    const older = String((await server.json("create", "--template", pinned))["sandboxId"]);
    expect((await server.cli("exec", older, "--no-stdin", "--", "cat", "/marker")).stdout).toBe("one");
    // What a session writes is its own: the template stays as it is.
    await server.cli("exec", older, "--no-stdin", "--", "sh", "-c", "echo changed > /marker");
    const fresh = String((await server.json("create", "--template", pinned))["sandboxId"]);
    expect((await server.cli("exec", fresh, "--no-stdin", "--", "cat", "/marker")).stdout).toBe("one");
    const inUse = await server.cli("template", "rm", pinned, "--json");
    expect(inUse.stdout).toContain("TEMPLATE_IN_USE");
  }, 120_000);

  it("refuses archives that lead out of the root, hold devices or make no usable root, and leaves nothing", async () => {
    const linked = await archive("linked", (root) => symlink("/etc", join(root, "proc")));
    expect(await refusal("bad", linked)).toMatchObject({
      reason: "TEMPLATE_INVALID",
      message: expect.stringContaining("/proc"),
    });
    const climbing = await archive("climbing", (root) => writeFile(join(root, "x"), "x"), "--transform=s,^./x$,../x,");
    expect(await refusal("bad", climbing)).toMatchObject({ reason: "TEMPLATE_INVALID" });
    const through = await archive("through", (root) => symlink("/tmp", join(root, "escape")));
    const file = join(directory, "through-file");
    await mkdir(join(file, "escape"), { recursive: true });
    await writeFile(join(file, "escape/turnbox-was-here"), "x");
    await run("tar", ["-C", file, "-rf", through, "./escape/turnbox-was-here"]);
    await refusal("bad", through);
    expect((await run("ls", ["/tmp/turnbox-was-here"])).exitCode).not.toBe(0);
    const device = await archive("device", async (root) => {
      await run("mknod", [join(root, "null"), "c", "1", "3"]);
    });
    expect(await refusal("bad", device)).toMatchObject({ reason: "TEMPLATE_INVALID" });
    const empty = join(directory, "empty.tar");
    await run("tar", ["-cf", empty, "-T", "/dev/null"]);
    expect(await refusal("bad", empty)).toMatchObject({ reason: "TEMPLATE_INVALID" });
    const garbage = join(directory, "garbage.tar");
    await writeFile(garbage, "this is no archive at all".repeat(100));
    expect(await refusal("bad", garbage)).toMatchObject({ reason: "TEMPLATE_INVALID" });
    expect(await refusal("Bad Name", linked)).toMatchObject({ reason: "INVALID_ARGUMENT" });
    const { templates } = await server.json("template", "ls");
    expect((templates as readonly Record<string, unknown>[]).some(({ name }) => name === "bad")).toBe(false);
  }, 120_000);
});
