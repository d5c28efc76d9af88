import type { ContainerLimits } from "../../runtime.ts";

/** Enough for package managers and servers; nothing that reaches mounts, modules, raw sockets or other processes' memory. */
export const CAPABILITIES = [
  "CAP_CHOWN",
  "CAP_DAC_OVERRIDE",
  "CAP_FOWNER",
  "CAP_FSETID",
  "CAP_KILL",
  "CAP_SETGID",
  "CAP_SETUID",
  "CAP_SETPCAP",
  "CAP_NET_BIND_SERVICE",
] as const;

/** The largest number of 64 bits, which is none of JavaScript's; the declared types do not have `rawJSON` yet. */
const UNLIMITED = (JSON as unknown as { readonly rawJSON: (text: string) => number }).rawJSON("18446744073709551615");

/**
 * A sentry has one set of limits for all processes that are started from outside, and a process that lowers its own lowers them
 * for all. With each start it puts those of this list back, so all are named that a process can lower, with the sentry's own values.
 */
const RLIMITS = [
  { type: "RLIMIT_NOFILE", soft: 65_536, hard: 65_536 },
  { type: "RLIMIT_MEMLOCK", soft: 65_536, hard: 65_536 },
  { type: "RLIMIT_MSGQUEUE", soft: 819_200, hard: 819_200 },
  { type: "RLIMIT_STACK", soft: 8 * 1024 ** 2, hard: UNLIMITED },
  ...["AS", "CORE", "CPU", "DATA", "FSIZE", "LOCKS", "NPROC", "RSS"].map((name) => ({
    type: `RLIMIT_${name}`,
    soft: UNLIMITED,
    hard: UNLIMITED,
  })),
];

/** The path of the runtime's own static program inside. It lies on the tmpfs `/run`, outside of the session's files. */
export const INIT_MOUNT = "/run/turnbox";
export const INIT_PROGRAM = `${INIT_MOUNT}/busybox`;

/**
 * What PID 1 does: nothing, but reap. `wait` collects every child that ends, also those that were orphaned and handed to
 * PID 1 (1,000 orphans leave no zombie), and the sleep gives it something to wait for, again when it is killed.
 */
const INIT_SCRIPT = `trap : TERM INT HUP; while :; do ${INIT_PROGRAM} sleep 2147483647 & wait; done`;
const INIT_ARGV = [INIT_PROGRAM, "sh", "-c", INIT_SCRIPT] as const;

const CPU_PERIOD_US = 100_000;
const SHARED_MEMORY_BYTES = 64 * 1024 * 1024;
const RUN_BYTES = 16 * 1024 * 1024;

const KERNEL_MOUNTS = [
  { destination: "/proc", type: "proc", source: "proc", options: ["nosuid", "noexec", "nodev"] },
  { destination: "/sys", type: "sysfs", source: "sysfs", options: ["nosuid", "noexec", "nodev", "ro"] },
  { destination: "/dev", type: "tmpfs", source: "tmpfs", options: ["nosuid", "mode=755", "size=65536k"] },
] as const;

/** Mount points that a root needs, with their modes. They are made if they are missing. */
export const MOUNT_POINTS: readonly { readonly path: string; readonly mode: number }[] = [
  { path: "proc", mode: 0o555 },
  { path: "sys", mode: 0o555 },
  { path: "dev", mode: 0o755 },
  { path: "run", mode: 0o755 },
  { path: "run/turnbox", mode: 0o755 },
  { path: "tmp", mode: 0o1777 },
];

/** The file that a container with a network needs in its root, for its resolver to be mounted on. */
export const RESOLVER_FILE = { path: "etc/resolv.conf", mode: 0o644 } as const;

export interface ProcessRequest {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** An OCI process: uid 0 with our capabilities and no way to more. */
export function createProcessSpec({ argv, env, cwd }: ProcessRequest) {
  return {
    terminal: false,
    user: { uid: 0, gid: 0 },
    args: [...argv],
    env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    cwd,
    capabilities: { bounding: CAPABILITIES, effective: CAPABILITIES, permitted: CAPABILITIES },
    rlimits: RLIMITS,
    // Before the service, whose own value a sandbox would inherit otherwise.
    oomScoreAdj: OOM_SCORE,
    noNewPrivileges: true,
  };
}

export interface OciRequest {
  /** The paths at which the boot finds the session's root and its `/tmp`, outside of the session's files. */
  readonly rootPath: string;
  readonly tmpPath: string;
  readonly hostname: string;
  readonly limits: ContainerLimits;
  readonly initDirectory: string;
  readonly cgroupsPath: string;
  readonly network?: OciNetwork;
  /** The sandbox that it is booted in; one of its own unless given. */
  readonly sandboxId?: string;
}

export interface OciNetwork {
  readonly netnsPath: string;
  /** The file that shows as `/etc/resolv.conf`. */
  readonly resolvConfPath: string;
}

const OOM_SCORE = 500;

const CONTAINER_TYPE = "io.kubernetes.cri.container-type";
const SANDBOX_ID = "io.kubernetes.cri.sandbox-id";

/**
 * The OCI spec of a resident container. `/tmp` is mounted by name: runsc would put its own tmpfs on an empty one. No path in it
 * leads through a session's files: runsc follows links in the sources of mounts.
 */
export function createOciSpec(request: OciRequest) {
  const { rootPath, tmpPath, hostname, limits, initDirectory, cgroupsPath, network, sandboxId } = request;
  return {
    ...(sandboxId === undefined ? {} : { annotations: { [CONTAINER_TYPE]: "container", [SANDBOX_ID]: sandboxId } }),
    ociVersion: "1.0.2",
    process: createProcessSpec({ argv: INIT_ARGV, env: {}, cwd: "/" }),
    root: { path: rootPath, readonly: false },
    hostname,
    mounts: [
      ...KERNEL_MOUNTS,
      tmpfs("/dev/shm", "1777", SHARED_MEMORY_BYTES),
      tmpfs("/run", "755", RUN_BYTES),
      { destination: INIT_MOUNT, type: "bind", source: initDirectory, options: ["bind", "ro", "nosuid", "nodev"] },
      { destination: "/tmp", type: "bind", source: tmpPath, options: ["bind", "rw", "nosuid", "nodev"] },
      ...(network === undefined ? [] : [resolvConf(network.resolvConfPath)]),
    ],
    linux: {
      cgroupsPath,
      namespaces: [
        ...["pid", "mount", "ipc", "uts"].map((type) => ({ type })),
        { type: "network", ...(network === undefined ? {} : { path: network.netnsPath }) },
      ],
      resources: toResources(limits),
    },
  };
}

export interface SpareRequest extends Pick<OciRequest, "hostname" | "limits" | "cgroupsPath"> {
  /** An empty directory: runsc wants one, and the image takes its place. */
  readonly rootPath: string;
  readonly imagePath: string;
}

/**
 * The OCI spec of a sandbox in which a container is to be booted later. Its own files are an image, so that it needs no
 * gofer, which would take as much memory again as the rest of it. The program has the same path as in containers, so that
 * the program that ends trees runs in either.
 */
export function createSpareSpec({ rootPath, imagePath, hostname, limits, cgroupsPath }: SpareRequest) {
  return {
    annotations: {
      [CONTAINER_TYPE]: "sandbox",
      "dev.gvisor.spec.rootfs.type": "erofs",
      "dev.gvisor.spec.rootfs.source": imagePath,
      "dev.gvisor.spec.rootfs.overlay": "memory",
    },
    ociVersion: "1.0.2",
    process: createProcessSpec({ argv: INIT_ARGV, env: {}, cwd: "/" }),
    root: { path: rootPath, readonly: false },
    hostname,
    mounts: KERNEL_MOUNTS,
    linux: {
      cgroupsPath,
      namespaces: ["pid", "mount", "ipc", "uts", "network"].map((type) => ({ type })),
      resources: toResources(limits),
    },
  };
}

function resolvConf(source: string) {
  return {
    destination: `/${RESOLVER_FILE.path}`,
    type: "bind",
    source,
    options: ["bind", "ro", "nosuid", "nodev", "noexec"],
  };
}

function tmpfs(destination: string, mode: string, sizeBytes: number) {
  return {
    destination,
    type: "tmpfs",
    source: "tmpfs",
    options: ["nosuid", "nodev", `mode=${mode}`, `size=${String(sizeBytes)}`],
  };
}

function toResources({ cpus, memoryBytes, pids }: ContainerLimits) {
  return {
    ...(cpus === undefined
      ? {}
      : { cpu: { period: CPU_PERIOD_US, quota: Math.max(1000, Math.round(cpus * CPU_PERIOD_US)) } }),
    ...(memoryBytes === undefined ? {} : { memory: { limit: memoryBytes } }),
    ...(pids === undefined ? {} : { pids: { limit: pids } }),
  };
}
