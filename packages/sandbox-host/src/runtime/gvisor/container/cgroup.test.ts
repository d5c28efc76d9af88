import { describe, expect, it } from "@jest/globals";
import { isMember, parseCgroupMounts, parseCpuMs, parseMemoryBytes, parseOomKills } from "./cgroup.ts";

describe("cgroup hierarchies", () => {
  it("are one per controller in version 1, with the unified one beside them", () => {
    const mountInfo = `24 30 0:21 / /proc rw,relatime - proc proc rw
33 32 0:28 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
34 32 0:29 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
41 32 0:36 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw`;
    expect(parseCgroupMounts(mountInfo)).toEqual([
      { version: 1, mountPoint: "/sys/fs/cgroup/cpu" },
      { version: 1, mountPoint: "/sys/fs/cgroup/memory" },
      { version: 2, mountPoint: "/sys/fs/cgroup/unified" },
    ]);
  });

  it("are a single one in version 2", () => {
    const mountInfo =
      "35 25 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
    expect(parseCgroupMounts(mountInfo)).toEqual([{ version: 2, mountPoint: "/sys/fs/cgroup" }]);
  });

  it("may be mounted at a path with a space", () => {
    expect(parseCgroupMounts("1 1 0:1 / /a\\040b rw - cgroup2 cgroup2 rw")).toEqual([
      { version: 2, mountPoint: "/a b" },
    ]);
  });
});

describe("membership in a cgroup", () => {
  it("is read from /proc/<pid>/cgroup", () => {
    expect(isMember("9:name=systemd:/turnbox/a1\n4:memory:/turnbox/a1\n0::/\n", "/turnbox/a1")).toBe(true);
    expect(isMember("0::/turnbox/a1\n", "/turnbox/a1")).toBe(true);
    expect(isMember("0::/system.slice/turnbox/a1\n", "/turnbox/a1")).toBe(true);
    expect(isMember("4:memory:/\n0::/\n", "/turnbox/a1")).toBe(false);
    expect(isMember("0::/turnbox/a12\n", "/turnbox/a1")).toBe(false);
    expect(isMember("", "/turnbox/a1")).toBe(false);
  });
});

describe("kills for want of memory", () => {
  it("are counted in both versions", () => {
    expect(parseOomKills("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")).toBe(2);
    expect(parseOomKills("low 0\nhigh 0\nmax 31\noom 3\noom_kill 1\noom_group_kill 0\n")).toBe(1);
    expect(parseOomKills("")).toBe(0);
  });
});

describe("what a group uses", () => {
  it("is read from version 1 and from version 2, and unknown where neither counts", () => {
    expect(parseCpuMs({ cpuacctUsage: "629800670\n", cpuStat: "nr_periods 0\n" })).toBeCloseTo(629.8, 1);
    expect(parseCpuMs({ cpuacctUsage: "", cpuStat: "usage_usec 1500\nuser_usec 1\n" })).toBe(1.5);
    expect(parseCpuMs({ cpuacctUsage: "", cpuStat: "nr_periods 0\n" })).toBeUndefined();
  });

  it("leaves out the file cache that the kernel takes back", () => {
    expect(parseMemoryBytes({ usage: "1000\n", stat: "inactive_file 1\ntotal_inactive_file 300\n" })).toBe(700);
    expect(parseMemoryBytes({ usage: "1000\n", stat: "anon 5\ninactive_file 300\n" })).toBe(700);
    expect(parseMemoryBytes({ usage: "100\n", stat: "inactive_file 300\n" })).toBe(0);
    expect(parseMemoryBytes({ usage: "", stat: "" })).toBeUndefined();
  });
});
