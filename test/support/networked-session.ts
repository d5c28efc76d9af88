import { execFileSync } from "node:child_process";
import { connect } from "node:net";
import { createNetworkNames, type NetworkNames } from "../../packages/sandbox-host/src/network/netns/names.ts";
import type { Json, TestHost } from "./host.ts";
import { bash } from "./host-calls.ts";
import { readRecords } from "./records.ts";

export const namesOf = ({ dataDirectory }: TestHost): NetworkNames => createNetworkNames(dataDirectory);

export function containerOf({ dataDirectory }: TestHost, id: string): string {
  return readRecords(dataDirectory).sessions.find((session) => session.id === id)?.container ?? "";
}

/** The namespace in which the sandbox of a session runs. */
export const netnsOf = (host: TestHost, id: string): string => namesOf(host).netns(containerOf(host, id));

type Target = readonly [address: string, port: number];

/** What becomes of connections that a sandbox tries, all at once: the first words of the answer or of the failure. */
export async function tries(
  host: TestHost,
  id: string,
  targets: readonly Target[],
): Promise<Readonly<Record<string, string>>> {
  const one = ([address, port]: Target): string =>
    `(r=$(nc -w 2 '${address}' ${port} </dev/null 2>&1 | head -n 1); echo "${address}:${port}=$r") &`;
  const { content } = await bash(host, id, `${targets.map(one).join("\n")}\nwait`);
  const lines = content.split("\n").filter((line) => line.includes("="));
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]));
}

/** Whether a sandbox gets to an address of the outside, which says hello. */
export async function reaches(host: TestHost, id: string, address: string): Promise<boolean> {
  return Object.values(await tries(host, id, [[address, 80]])).includes("hello");
}

/** The machine itself tries, which nothing holds back: whether or not somebody accepts, its packets arrive. */
export async function reachFromMachine(addresses: readonly string[], port = 80): Promise<void> {
  await Promise.all(
    addresses.map(async (address) => {
      const socket = connect({ host: address, port });
      socket.on("error", () => undefined);
      // To the end of both sides, so that no packet of it comes later.
      socket.resume().end();
      await new Promise((resolve) => socket.once("close", resolve));
    }),
  );
}

/** Gives a session another policy, one that allows connections out. */
export async function allow(host: TestHost, id: string, policy: Json): Promise<void> {
  await host.call("SessionService/UpdateNetworkPolicy", {
    sessionId: id,
    policy: { allowOutbound: true, ...policy },
  });
}

export interface SeenDenial {
  readonly destination: string;
  readonly rule: string;
}

export async function denials(host: TestHost, id: string): Promise<readonly SeenDenial[]> {
  const answer = await host.call("SessionService/GetNetworkPolicy", { sessionId: id });
  return (answer["denials"] ?? []) as readonly SeenDenial[];
}

export interface SeenLink {
  readonly mac: string;
  readonly address: string;
  /** In packets. */
  readonly received: number;
}

export function linkIn(netns: string, device: string): SeenLink {
  const listing = execFileSync("ip", ["-n", netns, "-j", "-s", "addr", "show", "dev", device]).toString();
  const [link] = JSON.parse(listing) as readonly {
    readonly address: string;
    readonly addr_info: readonly { readonly local: string }[];
    readonly stats64: { readonly rx: { readonly packets: number } };
  }[];
  return {
    mac: link?.address ?? "",
    address: link?.addr_info[0]?.local ?? "",
    received: link?.stats64.rx.packets ?? -1,
  };
}
