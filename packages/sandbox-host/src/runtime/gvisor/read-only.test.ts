import { describe, expect, it } from "@jest/globals";
import { withReadOnly } from "./read-only.ts";

const spec = { command: "runsc", args: ["run", "x"], deadlineMs: 5 };
const directory = "/a $(b)";

describe("a command in whose namespace a directory is read-only", () => {
  it.each([
    ["perl", { busyboxPath: "/bb", perlPath: "/bin/sh", arch: "x64" }, "/bin/sh"],
    ["busybox, where there is no perl", { busyboxPath: "/bb", perlPath: "/nonexistent", arch: "x64" }, "/bb"],
    ["busybox, on a processor that is not known", { busyboxPath: "/bb", perlPath: "/bin/sh", arch: "vax" }, "/bb"],
  ])("is started by %s, and the directory is an argument, never a part of a script", (_by, tools, command) => {
    const wrapped = withReadOnly(directory, tools, spec);
    expect(wrapped).toMatchObject({ command, deadlineMs: 5 });
    expect(wrapped.args.slice(-4)).toEqual([directory, "runsc", "run", "x"]);
    expect(wrapped.args.filter((arg) => arg.includes(directory))).toEqual([directory]);
  });
});
