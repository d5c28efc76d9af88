import { describe, expect, it } from "@jest/globals";
import { launchBoot } from "./boot-launcher.ts";

const spec = { command: "runsc", args: ["run", "x"], deadlineMs: 5 };
const view = {
  rootPath: "/a $(b)",
  rootTarget: "/bundle/root",
  targets: { tmp: "/bundle/tmp" },
  writable: ["/state"],
  writableMounts: ["/proc", "/sys/fs/cgroup"],
};

describe("the command that boots a container", () => {
  it.each([
    ["x64", ["272", "165", "442"]],
    ["arm64", ["97", "40", "442"]],
  ])("gets its paths as arguments and never as a part of the program, on %s", (arch, numbers) => {
    const { command, args, deadlineMs } = launchBoot(view, spec, { perlPath: "/bin/perl", arch });
    expect({ command, deadlineMs }).toEqual({ command: "/bin/perl", deadlineMs: 5 });
    expect(args.slice(1, 4)).toEqual(numbers);
    expect(args.slice(5)).toEqual([
      ...["/a $(b)", "/bundle/root", "2", "tmp", "/bundle/tmp"],
      ...["1", "/state", "2", "/proc", "/sys/fs/cgroup", "runsc", "run", "x"],
    ]);
    expect(args.filter((arg) => arg.includes("/a $(b)"))).toEqual(["/a $(b)"]);
  });

  it("fails on a processor that gVisor does not run on", () => {
    expect(() => launchBoot(view, spec, { arch: "vax" })).toThrow("gVisor does not run on vax");
  });
});
