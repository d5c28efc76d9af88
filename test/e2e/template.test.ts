import { cp, mkdtemp, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { instancesReady } from "../support/control-calls.ts";
import { poll, run } from "../support/process.ts";
import { makeHome, startServer, type TestServer } from "../support/server.ts";

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

/** Fills a directory with a root filesystem of busybox and bash. */
async function fillRoot(root: string): Promise<void> {
  await mkdir(join(root, "bin"), { recursive: true });
  for (const [from, to] of [
    ["/bin/busybox", "busybox"],
    ["/bin/bash-static", "bash"],
  ] as const) {
    await run("cp", [from, join(root, "bin", to)]);
  }
  for (const applet of ["sh", "ls", "cat", "id"]) await symlink("busybox", join(root, "bin", applet));
}

/** A root filesystem with busybox and bash, changed by the test, as an archive. */
async function archive(
  name: string,
  change: (root: string) => Promise<void>,
  ...tarArgs: readonly string[]
): Promise<string> {
  const root = join(directory, name);
  await fillRoot(root);
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

/** An image layout of two layers; the upper one removes a file of the lower. */
async function ociLayout(name: string, change: (root: string) => Promise<void>): Promise<string> {
  const layout = join(directory, name);
  const bundle = join(directory, `${name}-bundle`);
  const umoci = async (...args: readonly string[]): Promise<void> => {
    const { exitCode, stderr } = await run("umoci", args);
    if (exitCode !== 0) throw new Error(stderr);
  };
  const addLayer = async (fill: (root: string) => Promise<void>): Promise<void> => {
    await umoci("unpack", "--image", `${layout}:v1`, bundle);
    await fill(join(bundle, "rootfs"));
    await umoci("repack", "--image", `${layout}:v1`, bundle);
    await rm(bundle, { recursive: true });
  };
  await umoci("init", "--layout", layout);
  await umoci("new", "--image", `${layout}:v1`);
  await addLayer(async (root) => {
    await fillRoot(root);
    await writeFile(join(root, "removed"), "x");
    await writeFile(join(root, "marker"), "lower");
  });
  await addLayer(async (root) => {
    await rm(join(root, "removed"));
    await writeFile(join(root, "marker"), "upper");
    await run("chown", ["12:34", join(root, "marker")]);
    await change(root);
  });
  await umoci("gc", "--layout", layout);
  return layout;
}

/** What builds have left in the directory for temporary files. */
const leftovers = async (): Promise<readonly string[]> =>
  (await readdir(tmpdir())).filter((name) => name.startsWith("turnbox-build-"));

describe("template build oci", () => {
  it("makes a template from an image layout, as a directory or an archive, in which commands run", async () => {
    const before = await leftovers();
    const layout = await ociLayout("image", (root) => symlink("/etc/elsewhere", join(root, "absolute")));
    const built = await server.json("template", "build", "oci", "tools", layout, "--ref", "v1");
    expect(built).toMatchObject({ name: "tools", hosts: 1 });
    const id = String((await server.json("create", "--template", "tools"))["sandboxId"]);
    const script = "cat /marker; ls -n /marker; ls /removed; ls -l /absolute; pwd";
    const { stdout } = await server.cli("exec", id, "--no-stdin", "--", "sh", "-c", script);
    expect(stdout).toMatch(/^upper-rw\S+ +1 12 +34 .*\n.*\/absolute -> \/etc\/elsewhere\n\/workspace\n$/);

    const file = join(directory, "image.tar.gz");
    await run("tar", ["-C", layout, "-czf", file, "."]);
    const again = await server.json("template", "build", "oci", "tools", file);
    expect(again).toMatchObject({ digest: built["digest"] });
    expect(await leftovers()).toEqual(before);
  }, 120_000);

  it("refuses images that were changed, have other names or make no usable root, and leaves nothing", async () => {
    const before = await leftovers();
    const refused = async (layout: string, ...args: readonly string[]): Promise<Record<string, unknown>> => {
      const { stdout, exitCode } = await server.cli("template", "build", "oci", "bad", layout, "--json", ...args);
      expect(exitCode).not.toBe(0);
      return (JSON.parse(stdout) as { error: Record<string, unknown> }).error;
    };
    const layout = await ociLayout("shell-less", (root) => rm(join(root, "bin/bash")));
    expect(await refused(layout)).toMatchObject({
      reason: "TEMPLATE_INVALID",
      message: expect.stringContaining("bash"),
    });
    expect(await refused(layout, "--ref", "v2")).toMatchObject({ message: expect.stringContaining('it has "v1"') });
    expect(await refused(join(directory, "nowhere"))).toMatchObject({ reason: "FILE_NOT_FOUND" });

    const changed = join(directory, "changed");
    await cp(layout, changed, { recursive: true });
    const blobs = join(changed, "blobs/sha256");
    for (const name of await readdir(blobs)) {
      const bytes = await readFile(join(blobs, name));
      if (bytes.length < 100_000) continue;
      bytes[50_000] = (bytes[50_000] ?? 0) ^ 1;
      await writeFile(join(blobs, name), bytes);
    }
    expect(await refused(changed)).toMatchObject({
      reason: "TEMPLATE_INVALID",
      message: expect.stringContaining("does not match its digest"),
    });

    const device = await ociLayout("device-image", async (root) => {
      await run("mknod", [join(root, "null"), "c", "1", "3"]);
    });
    expect(await refused(device)).toMatchObject({ message: expect.stringContaining("CharacterDevice") });
    const { templates } = await server.json("template", "ls");
    expect((templates as readonly Record<string, unknown>[]).some(({ name }) => name === "bad")).toBe(false);
    expect(await leftovers()).toEqual(before);
  }, 120_000);
});

describe("a host that is added after templates were imported", () => {
  it("gets them, and keeps them no longer than the others", async () => {
    await using home = await makeHome();
    const file = await archive("late", (root) => writeFile(join(root, "marker"), "late"));
    const first = await startServer({ home: home.path, env: { TURNBOX_HOSTS: "1" } });
    await first.json("template", "import", "late", file);
    await first.stop();

    await using second = await startServer({ home: home.path, env: { TURNBOX_HOSTS: "2" } });
    await instancesReady(second, 2, 60_000);
    await second.json("fleet", "cordon", "local-1");
    const { sandboxId } = await second.json("create", "--template", "late");
    expect(sandboxId).toMatch(/^fleet:local-2:/);
    const seen = await second.cli("exec", String(sandboxId), "--no-stdin", "--", "cat", "/marker");
    expect(seen.stdout).toBe("late");

    await second.cli("rm", String(sandboxId));
    expect(await second.json("template", "rm", "late")).toMatchObject({ hosts: 2 });
    const archives = join(home.path, "templates");
    await poll(
      "the archive to be removed",
      async () => ((await readdir(archives)).length === 0 ? true : undefined),
      60_000,
    );
    const { templates } = await second.json("template", "ls");
    expect(templates).toEqual([expect.objectContaining({ name: "mini" })]);
  }, 240_000);
});
