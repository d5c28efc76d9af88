import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { uploadOf } from "../support/file-client.ts";
import { doneOf, type FileRoom, openFileRoom } from "../support/file-room.ts";
import { WRITTEN } from "../support/file-victims.ts";

let room: FileRoom;
let outside: string;
beforeAll(async () => {
  room = await openFileRoom();
  outside = room.canary.directory;
}, 120_000);
afterAll(async () => {
  await room[Symbol.asyncDispose]();
}, 120_000);

/** Ways to say where the canary is, for a link at /workspace. */
const waysTo = (path: string): Readonly<Record<string, string>> => ({
  absolute: path,
  "by dots": `../../../../../../../../../../../..${path}`,
  "by dots from the root": `/../../../..${path}`,
  "by the root of a process": `/proc/self/root${path}`,
  "by the root of the first process": `/proc/1/root${path}`,
});

describe("links that an agent makes, on a real host", () => {
  it("attack 1: a link at the end leads nowhere but inside, for all that reads and writes", async () => {
    const { agent, victims, expectHarmless } = room;
    for (const [name, target] of Object.entries(waysTo(`${outside}/secret`))) {
      await agent(`rm -f leaf chain; ln -s '${target}' leaf; ln -s leaf chain`);
      for (const path of ["leaf", "chain"]) {
        // A link is an entry of its own; what it leads to is not there.
        const done = doneOf(await expectHarmless(victims.fileReads, path));
        expect([name, path, done]).toEqual([name, path, ["Stat"]]);
      }
      await expectHarmless(victims.fileWrites, "leaf");
    }
    await agent("echo text > legal; ln -s legal legal-link; rm -rf by; mkdir by");
    expect(doneOf(await expectHarmless(victims.fileReads, "legal-link"))).toEqual(Object.keys(victims.fileReads));
    for (const [name, victim] of Object.entries(victims.fileWrites)) {
      await agent("echo text > legal");
      expect([name, (await victim("legal")).isDone]).toEqual([name, true]);
    }
  }, 120_000);

  it("attack 1: the same link means the agent's own file, if it has one at that path", async () => {
    const { agent, files, sessionId, canary } = room;
    await agent(`mkdir -p ${outside}; echo own > ${outside}/secret; rm -f own; ln -s ${outside}/secret own`);
    expect((await room.victims.fileReads["ReadFile"]?.("own"))?.text).toBe("own\n");
    await files.writeFile(uploadOf({ sessionId, path: "own" }, Buffer.from(WRITTEN)));
    expect(await agent(`cat ${outside}/secret; rm -r ${outside}`)).toBe(WRITTEN);
    canary.expectUntouched();
  }, 60_000);

  it("attack 2: a link in the middle leads nowhere but inside, for all that reads and writes", async () => {
    const { agent, victims, expectHarmless } = room;
    for (const [name, target] of Object.entries({ ...waysTo(outside), "to the root": "/" })) {
      await agent(`rm -f d; ln -s '${target}' d`);
      const below = name === "to the root" ? `d${outside}` : "d";
      const reads = { ...victims.fileReads, ...victims.directoryReads };
      expect([name, doneOf(await expectHarmless(victims.fileReads, `${below}/secret`))]).toEqual([name, []]);
      expect([name, doneOf(await expectHarmless(reads, `${below}/inner`))]).toEqual([name, []]);
      await expectHarmless(victims.fileWrites, `${below}/inner/secret`);
      await expectHarmless(victims.directoryWrites, below);
      await agent(`rm -rf ${outside}`);
    }
    await agent("mkdir -p real/inner; echo text > real/inner/secret; ln -s real legal-d");
    expect(doneOf(await expectHarmless(victims.fileReads, "legal-d/inner/secret"))).toEqual(
      Object.keys(victims.fileReads),
    );
    expect(doneOf(await expectHarmless(victims.directoryReads, "legal-d/inner"))).toEqual(
      Object.keys(victims.directoryReads),
    );
    expect(doneOf(await expectHarmless(victims.directoryWrites, "legal-d"))).toEqual(
      Object.keys(victims.directoryWrites),
    );
    expect(await agent("ls real")).toBe("by\nby-Archive\nby-Make\nby-Move\nby-WriteFile\n");
  }, 120_000);

  it("attack 3: a new file below a link whose target has no such directory is made inside or not at all", async () => {
    const { agent, files, sessionId, canary, victims } = room;
    await agent(`rm -rf d ${outside}; ln -s ${outside} d`);
    const header = { sessionId, path: "d/new/deep/file" };
    await expect(files.writeFile(uploadOf(header, Buffer.from(WRITTEN)))).rejects.toThrow();
    await files.writeFile(uploadOf({ ...header, createDirectories: true }, Buffer.from(WRITTEN)));
    await victims.directoryWrites["write_file"]?.("d");
    canary.expectUntouched();
    expect(await agent(`cat ${outside}/new/deep/file ${outside}/by/write_file`)).toBe(WRITTEN.repeat(2));
  }, 60_000);
});

describe("paths that a caller makes up, on a real host", () => {
  const long = (bytes: number): string => `a/${"b/".repeat(bytes)}`.slice(0, bytes);
  it.each([
    ["empty", ""],
    ["NUL", "legal\0x"],
    ["4,097 bytes", long(4097)],
    ["a name of 256 bytes", "n".repeat(256)],
  ])("attack 5: %s is refused as an argument", async (_name, path) => {
    const { victims, expectHarmless } = room;
    const all = { ...victims.fileReads, ...victims.fileWrites };
    for (const [name, { isDone, text }] of Object.entries(await expectHarmless(all, path))) {
      expect([name, isDone, text]).toEqual([name, false, expect.stringMatching(/INVALID_ARGUMENT|must /)]);
    }
  });

  it("attack 5: dots, slashes and odd characters stay inside, and are names if they can be names", async () => {
    const { agent, victims, expectHarmless } = room;
    const climbs = ["..", "a/../..", "/..", "//", "legal/", "/./../"];
    const ways = [1, 2, 3, 8].map((depth) => `${"../".repeat(depth)}${outside.slice(1)}/secret`);
    const odd = ["%2e%2e/x", "..\\..\\x", "new\nline", "-rf", "~", "$(id)", "\u202e", "*"];
    await agent("mkdir -p odd a");
    for (const path of [...climbs, ...ways]) {
      await expectHarmless({ ...victims.fileReads, ...victims.directoryReads }, path);
    }
    for (const path of [`//${outside}//secret`, `${outside}/secret/`, ...ways]) {
      await expectHarmless(victims.fileWrites, path);
    }
    for (const name of odd) {
      await agent("rm -rf odd; mkdir odd");
      if (!name.includes("/")) expect((await victims.fileWrites["WriteFile"]?.(`odd/${name}`))?.isDone).toBe(true);
      await expectHarmless(victims.fileReads, `odd/${name}`);
      if (!name.includes("/")) expect(await agent("ls -A odd | wc -l")).toBe("1\n");
    }
    expect((await victims.fileWrites["WriteFile"]?.("/workspace/../workspace/./legal"))?.isDone).toBe(true);
  }, 120_000);

  it("attack 5: names that are no UTF-8 are listed and removed with their directory", async () => {
    const { agent, victims, expectHarmless } = room;
    await agent("rm -rf odd; mkdir odd; echo text > odd/$(printf 'x\\377\\376y')");
    expect(doneOf(await expectHarmless(victims.directoryReads, "odd"))).toEqual(Object.keys(victims.directoryReads));
    expect((await victims.fileWrites["Remove"]?.("odd"))?.isDone).toBe(true);
    expect(await agent("ls -d odd 2>&1 || true")).toContain("No such file");
  });

  it("attack 6: /proc, /sys and /dev of the machine are no files of the session, by name and by link", async () => {
    const { agent, victims, expectHarmless, host } = room;
    const paths = [
      "/proc/self/root",
      `/proc/self/root${outside}/secret`,
      "/proc/self/environ",
      "/proc/1/environ",
      `/proc/${host.pid}/environ`,
      "/dev/zero",
      "/sys/kernel/notes",
      ...Array.from({ length: 6 }, (_, descriptor) => `/proc/self/fd/${descriptor}`),
    ];
    for (const path of paths) {
      await agent(`rm -f spy; ln -s '${path}' spy`);
      for (const way of [path, "spy"]) {
        const reads = { ...victims.directoryReads, ReadFile: victims.fileReads["ReadFile"] ?? fail, ...tools() };
        expect([path, way, doneOf(await expectHarmless(reads, way))]).toEqual([path, way, []]);
      }
    }
    // Inside, the agent has its own.
    expect(await agent("tr '\\0' '\\n' < /proc/self/environ | grep -c PATH=")).toBe("1\n");
    expect(await agent("cat /proc/1/environ /proc/*/environ 2>/dev/null | tr '\\0' '\\n'")).not.toContain(
      "TURNBOX_HOME",
    );
    await agent("mkdir -p proc/self; echo text > proc/self/environ");
    expect((await victims.fileReads["ReadFile"]?.("proc/self/environ"))?.text).toBe("text\n");
  }, 120_000);
});

const fail = (): never => {
  throw new Error("there is no such victim");
};
const tools = () => ({ read_file: room.victims.fileReads["read_file"] ?? fail });
