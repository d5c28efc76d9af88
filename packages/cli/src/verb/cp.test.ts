import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createHarness, type Harness } from "../cli-harness.suite.ts";
import { SandboxError } from "@turnbox/client";
import { createServices, type FakeSandbox, newSandbox, newWorld, routeSandbox, type World } from "@turnbox/client/fake";

let world: World;

let sandbox: FakeSandbox;

let harness: Harness;

beforeEach(async () => {
  world = newWorld();
  sandbox = newSandbox();
  const services = createServices(world);
  harness = await createHarness({
    ...services,
    host: (router) => {
      services.host(router);
      routeSandbox(router, sandbox);
    },
  });
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

describe("turnbox cp, cat and write", () => {
  it("copies files both ways, into directories under their own names", async () => {
    const here = join(harness.home, "here.txt");
    await writeFile(here, "content", { mode: 0o640 });
    expect((await harness.run(["cp", here, "fleet:i1:abc123:/workspace"])).exitCode).toBe(0);
    expect(sandbox.files.get("/workspace/here.txt")).toMatchObject({ content: Buffer.from("content"), mode: 0o640 });
    const target = join(harness.home, "copies");
    await mkdir(target);
    const ran = await harness.run(["cp", "web:/workspace/here.txt", target, "--json"]);
    expect(ran.json()).toMatchObject({ destination: join(target, "here.txt"), bytes: 7 });
    expect(await readFile(join(target, "here.txt"), "utf8")).toBe("content");
  });

  it("copies directories both ways as archives", async () => {
    const tree = join(harness.home, "tree");
    await mkdir(join(tree, "inner"), { recursive: true });
    await writeFile(join(tree, "inner/text"), "deep");
    await symlink("inner/text", join(tree, "link"));
    expect((await harness.run(["cp", tree, "web:/srv"])).exitCode).toBe(0);
    expect((await harness.run(["cp", "web:/srv", join(harness.home, "back")])).exitCode).toBe(0);
    expect(await readFile(join(harness.home, "back/link"), "utf8")).toBe("deep");
  });

  it("writes through no link that an earlier copy brought", async () => {
    const outside = join(harness.home, "outside");
    await mkdir(outside);
    await writeFile(join(outside, "file"), "mine");
    const links = join(harness.home, "links");
    await mkdir(links);
    await symlink(outside, join(links, "dir"));
    await symlink(join(outside, "file"), join(links, "file"));
    const files = join(harness.home, "files");
    await mkdir(join(files, "dir"), { recursive: true });
    await writeFile(join(files, "dir/planted"), "theirs");
    await writeFile(join(files, "file"), "theirs");
    await harness.run(["cp", links, "web:/links"]);
    await harness.run(["cp", files, "web:/files"]);
    const target = join(harness.home, "target");
    expect((await harness.run(["cp", "web:/links", target])).exitCode).toBe(0);
    sandbox.archives.set("/target", sandbox.archives.get("/files") ?? Buffer.alloc(0));
    sandbox.directories.add("/target");
    expect((await harness.run(["cp", "web:/target", harness.home])).exitCode).toBe(0);
    expect(await readFile(join(target, "dir/planted"), "utf8")).toBe("theirs");
    expect(await readFile(join(outside, "file"), "utf8")).toBe("mine");
    expect(await readdir(outside)).toEqual(["file"]);
  });

  it("leaves nothing of a file that did not come whole, and the old one as it was", async () => {
    sandbox.files.set("/big", { content: Buffer.from("new content"), mode: 0o644 });
    harness.faults.set("ReadFile", [{ cutAfter: 1 }, new SandboxError("PERMISSION_DENIED", "no longer")]);
    const target = join(harness.home, "target");
    await mkdir(target);
    await writeFile(join(target, "big"), "old");
    expect((await harness.run(["cp", "web:/big", target])).exitCode).toBe(1);
    expect(await readdir(target)).toEqual(["big"]);
    expect(await readFile(join(target, "big"), "utf8")).toBe("old");
  });

  it("goes on with a file where the connection broke", async () => {
    sandbox.files.set("/big", { content: Buffer.from("new content"), mode: 0o600 });
    sandbox.breakAfterBytes = [1];
    const target = join(harness.home, "big");
    expect((await harness.run(["cp", "web:/big", target])).exitCode).toBe(0);
    expect(await readFile(target, "utf8")).toBe("new content");
  });

  it("fails where an archive is no archive", async () => {
    sandbox.directories.add("/srv");
    sandbox.archives.set("/srv", Buffer.alloc(2048, "x"));
    const ran = await harness.run(["cp", "web:/srv", join(harness.home, "back")]);
    expect(ran.exitCode).toBe(1);
    expect(ran.stderr).toContain("was not unpacked whole");
  });

  it("shows how far it is on a terminal only", async () => {
    sandbox.files.set("/big", { content: Buffer.alloc(4096), mode: 0o644 });
    const target = join(harness.home, "big");
    const shown = await harness.run(["cp", "web:/big", target], { stderr: { isTTY: true } });
    expect(shown.stderr).toMatch(/\r\[#{12}-{12}\] {2}50% {2}2\.0 KiB of 4\.0 KiB.*\r\u001b\[Kcopied/s);
    expect((await harness.run(["cp", "web:/big", target])).stderr).toMatch(/^copied/);
  });

  it("prints and writes files, bytes unchanged", async () => {
    const ran = await harness.run(["write", "web", "/notes", "--mode", "600"], { stdin: "a\u0000b" });
    expect(ran).toMatchObject({ exitCode: 0, stdout: "" });
    expect(sandbox.files.get("/notes")).toMatchObject({ mode: 0o600 });
    expect((await harness.run(["cat", "web", "/notes"])).stdout).toBe("a\u0000b");
  });

  it.each([
    [2, ["cp", "/a", "/b"]],
    [2, ["cp", "web:/a", "web:/b"]],
    [2, ["write", "web", "/a", "--mode", "9"]],
    [4, ["cp", "web:/nothing", "/tmp"]],
    [4, ["cp", "/nothing/here", "web:/a"]],
    [4, ["cat", "web", "/nothing"]],
  ])("answers with %d to %j", async (exitCode, args) => {
    expect((await harness.run(args)).exitCode).toBe(exitCode);
  });
});
