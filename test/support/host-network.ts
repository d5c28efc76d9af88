import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "./process.ts";

/** A network namespace of one host, linked with the machine, that can be cut off and slowed without anybody being told. */
export interface HostNetwork extends AsyncDisposable {
  /** Of the host. */
  readonly address: string;
  /** What a program is run by to be in it. */
  readonly launcher: readonly string[];
  /** Drops all that comes in or goes out. */
  cut(): Promise<void>;
  heal(): Promise<void>;
  /** Lets so many bits through in a second. */
  slow(bitsPerSecond: number): Promise<void>;
  unslow(): Promise<void>;
}

const must = async (command: string, ...args: readonly string[]): Promise<void> => {
  const { exitCode, stderr } = await run(command, args, { timeoutMs: 30_000 });
  if (exitCode !== 0) throw new Error(`${command} ${args.join(" ")}: exit ${exitCode}: ${stderr}`);
};

/** Addresses are of the range for benchmarks, which nobody routes; `place` is from 0 to 63. */
export async function makeHostNetwork(place: number): Promise<HostNetwork> {
  const name = `tbt${process.pid}-${place}`;
  const link = `tbt${process.pid % 100_000}${place}`;
  const network = `198.18.${process.pid % 256}`;
  const [near, far] = [`${network}.${place * 4 + 1}`, `${network}.${place * 4 + 2}`];
  const launcher = ["nsenter", `--net=/var/run/netns/${name}`];
  const inside = (...args: readonly string[]): Promise<void> => must("nsenter", ...launcher.slice(1), ...args);
  await using stack = new AsyncDisposableStack();
  await must("ip", "netns", "add", name);
  stack.defer(() => must("ip", "netns", "del", name));
  await must("ip", "link", "add", link, "type", "veth", "peer", "name", "up0", "netns", name);
  // The link goes with its other end.
  await must("ip", "addr", "add", `${near}/30`, "dev", link);
  await must("ip", "link", "set", link, "up");
  await inside("ip", "link", "set", "lo", "up");
  await inside("ip", "addr", "add", `${far}/30`, "dev", "up0");
  await inside("ip", "link", "set", "up0", "up");
  await inside("ip", "route", "add", "default", "via", near);
  const owned = stack.move();
  return {
    address: far,
    launcher,
    cut: () =>
      inside(
        "nft",
        "add table netdev cut; add chain netdev cut in { type filter hook ingress device up0 priority 0; policy drop; }; add table inet cut; add chain inet cut out { type filter hook output priority 0; policy accept; }; add rule inet cut out oifname up0 drop",
      ),
    heal: () => inside("nft", "delete table netdev cut; delete table inet cut"),
    slow: (bitsPerSecond) =>
      inside(
        "tc",
        "qdisc",
        "replace",
        "dev",
        "up0",
        "root",
        "tbf",
        "rate",
        `${bitsPerSecond}bit`,
        "burst",
        "4kb",
        "latency",
        "5s",
      ),
    unslow: () => inside("tc", "qdisc", "del", "dev", "up0", "root"),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

export interface Certificate extends AsyncDisposable {
  readonly certificatePath: string;
  readonly keyPath: string;
}

/** A certificate for addresses, which is its own authority. */
export async function makeCertificate(addresses: readonly string[]): Promise<Certificate> {
  const directory = await mkdtemp(join(tmpdir(), "turnbox-tls-"));
  const [certificatePath, keyPath] = [join(directory, "host.pem"), join(directory, "host.key")];
  const names = addresses.map((address) => `IP:${address}`).join(",");
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", keyPath];
  const text = ["-subj", "/CN=turnbox test", "-addext", `subjectAltName=${names}`];
  await must("openssl", "req", "-x509", "-days", "2", ...key, "-out", certificatePath, ...text);
  return {
    certificatePath,
    keyPath,
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}
