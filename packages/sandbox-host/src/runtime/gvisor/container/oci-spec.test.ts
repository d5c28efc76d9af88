import { describe, expect, it } from "@jest/globals";
import { createOciSpec, createProcessSpec, INIT_MOUNT } from "./oci-spec.ts";

const NINE = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "NET_BIND_SERVICE"];
const request = {
  rootPath: "/bundle/root",
  tmpPath: "/bundle/tmp",
  hostname: "box",
  limits: { cpus: 0.5, memoryBytes: 1024, pids: 7 },
  initDirectory: "/state/init",
  cgroupsPath: "/turnbox/a",
};
const mountAt = (destination: string) =>
  createOciSpec(request).mounts.find((mount) => mount.destination === destination);

describe("the OCI spec of a container", () => {
  it("has exactly nine capabilities, in the three sets that matter, and no new privileges", () => {
    const { process } = createOciSpec(request);
    const expected = NINE.map((name) => `CAP_${name}`);
    expect(process.capabilities).toEqual({ bounding: expected, effective: expected, permitted: expected });
    expect(process.noNewPrivileges).toBe(true);
    expect(process.user).toEqual({ uid: 0, gid: 0 });
    expect(process.rlimits[0]).toEqual({ type: "RLIMIT_NOFILE", soft: 65_536, hard: 65_536 });
    expect(JSON.stringify(process.rlimits)).toContain(
      '{"type":"RLIMIT_NPROC","soft":18446744073709551615,"hard":18446744073709551615}',
    );
  });

  it("has namespaces of its own", () => {
    const types = createOciSpec(request).linux.namespaces.map(({ type }) => type);
    expect(types.toSorted()).toEqual(["ipc", "mount", "network", "pid", "uts"]);
  });

  it("joins a network that was made for it, and shows its resolver", () => {
    const network = { netnsPath: "/run/netns/x", resolvConfPath: "/state/resolv.conf" };
    const { linux, mounts } = createOciSpec({ ...request, network });
    expect(linux.namespaces).toContainEqual({ type: "network", path: "/run/netns/x" });
    const resolver = mounts.find(({ destination }) => destination === "/etc/resolv.conf");
    expect(resolver).toMatchObject({ type: "bind", source: "/state/resolv.conf" });
  });

  it("mounts /tmp by name, from a place outside of the session's files", () => {
    expect(mountAt("/tmp")).toMatchObject({ type: "bind", source: "/bundle/tmp" });
    const sources = createOciSpec(request)
      .mounts.filter(({ type }) => type === "bind")
      .map(({ source }) => source);
    expect(sources).toEqual(["/state/init", "/bundle/tmp"]);
  });

  it("mounts /sys and its own programs read-only, and bounds every tmpfs", () => {
    expect(mountAt("/sys")?.options).toContain("ro");
    expect(mountAt(INIT_MOUNT)?.options).toContain("ro");
    const tmpfs = createOciSpec(request).mounts.filter(({ type }) => type === "tmpfs");
    expect(tmpfs.map(({ destination }) => destination)).toEqual(["/dev", "/dev/shm", "/run"]);
    for (const { options } of tmpfs) expect(options.join()).toMatch(/size=\d+/);
  });

  it("mounts /run before what lies on it", () => {
    const destinations = createOciSpec(request).mounts.map(({ destination }) => destination);
    expect(destinations.indexOf("/run")).toBeLessThan(destinations.indexOf(INIT_MOUNT));
    expect(destinations.indexOf("/dev")).toBeLessThan(destinations.indexOf("/dev/shm"));
  });

  it("sets the limits that are given, and none that are not", () => {
    expect(createOciSpec(request).linux.resources).toEqual({
      cpu: { period: 100_000, quota: 50_000 },
      memory: { limit: 1024 },
      pids: { limit: 7 },
    });
    expect(createOciSpec({ ...request, limits: {} }).linux.resources).toEqual({});
  });

  it("carries no annotations, by which runtime flags could be set", () => {
    expect(createOciSpec(request)).not.toHaveProperty("annotations");
  });
});

describe("the OCI process of an execution", () => {
  it("has the environment that is given and the capabilities of the container", () => {
    const spec = createProcessSpec({ argv: ["a", "b"], env: { X: "1", Y: "two words" }, cwd: "/w" });
    expect(spec).toMatchObject({ args: ["a", "b"], env: ["X=1", "Y=two words"], cwd: "/w", terminal: false });
    expect(spec.capabilities).toEqual(createOciSpec(request).process.capabilities);
  });
});
