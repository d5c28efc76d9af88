import { once } from "node:events";
import { execFileSync } from "node:child_process";
import { makeWorld, nextLine, startNode } from "../../packages/sandbox-host/src/network/world.suite.ts";

/**
 * Everything outside of the machine, as a namespace that owns addresses. It counts each packet that arrives, whether or not
 * somebody listens; says hello at ports 80 and 7700; answers names at its first address; redirects at `REDIRECT_PORT`.
 */
export interface Outside extends AsyncDisposable {
  readonly netns: string;
  /** Destinations of packets since the last call, `address:port/protocol`, without a port where the protocol has none. */
  packets(): readonly string[];
  /** From now on the name has these addresses, for no time at all. */
  answer(name: string, addresses: readonly string[]): void;
  /** Names that were asked for since the last call. */
  asked(): Promise<readonly string[]>;
}

/** Of the server of names. */
export const NAMES_PORT = 5353;
/** `GET /?to=URL` is answered with a redirect to the URL. */
export const REDIRECT_PORT = 8080;

const SERVER = `
const dgram = require("node:dgram"), http = require("node:http");
const answers = new Map(); let asked = [];
const udp = dgram.createSocket("udp4");
udp.on("message", (query, from) => {
  const labels = []; let at = 12;
  while (query[at] > 0) { labels.push(query.toString("latin1", at + 1, at + 1 + query[at])); at += query[at] + 1; }
  const name = labels.join(".").toLowerCase(), addresses = answers.get(name) ?? [];
  asked.push(name);
  const head = Buffer.alloc(12);
  query.copy(head, 0, 0, 2); head.writeUInt16BE(addresses.length > 0 ? 0x8180 : 0x8183, 2);
  head.writeUInt16BE(1, 4); head.writeUInt16BE(addresses.length, 6);
  const records = addresses.map((address) => Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split(".").map(Number)]));
  udp.send(Buffer.concat([head, query.subarray(12, at + 5), ...records]), from.port, from.address);
});
const web = http.createServer((request, response) => {
  response.writeHead(302, { location: new URL(request.url, "http://x").searchParams.get("to") ?? "/", connection: "close" }).end();
});
udp.bind(${String(NAMES_PORT)}, process.argv[1], () => web.listen(${String(REDIRECT_PORT)}, "0.0.0.0", () => console.log("ready")));
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { name, addresses } = JSON.parse(line);
  if (name !== undefined) answers.set(name, addresses);
  else { console.log(JSON.stringify(asked)); asked = []; }
}).on("close", () => process.exit(0));
`;

/** What the kernels at both ends tell one another by themselves does not count. */
const COUNTERS = `
table inet outside {
  set four { type ipv4_addr . inet_proto . inet_service; flags dynamic; size 65535; }
  set six { type ipv6_addr . inet_proto . inet_service; flags dynamic; size 65535; }
  chain prerouting {
    type filter hook prerouting priority raw; policy accept;
    iifname "lo" accept
    ip protocol igmp accept
    icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit, nd-router-advert, mld2-listener-report } accept
    meta nfproto ipv4 meta l4proto { tcp, udp } update @four { ip daddr . meta l4proto . th dport }
    meta nfproto ipv4 meta l4proto != { tcp, udp } update @four { ip daddr . meta l4proto . 0 }
    meta nfproto ipv6 meta l4proto { tcp, udp } update @six { ip6 daddr . meta l4proto . th dport }
    meta nfproto ipv6 meta l4proto != { tcp, udp } update @six { ip6 daddr . meta l4proto . 0 }
  }
}
`;

/** Makes an outside with these addresses, of either version; all of them are routed to it and to nothing else. */
export async function makeOutside(addresses: readonly string[]): Promise<Outside> {
  const world = await makeWorld(addresses.filter((address) => !address.includes(":")));
  const { netns } = world;
  const link = netns.replace("-", "");
  const near = "fd74:6278::1";
  execFileSync("ip", ["-6", "addr", "add", `${near}/128`, "dev", link, "nodad"]);
  execFileSync("ip", ["-n", netns, "-6", "route", "add", `${near}/128`, "dev", "eth0"]);
  for (const address of addresses.filter((each) => each.includes(":"))) {
    execFileSync("ip", ["-n", netns, "-6", "addr", "add", `${address}/128`, "dev", "eth0", "nodad"]);
    execFileSync("ip", ["-6", "route", "add", `${address}/128`, "dev", link, "src", near]);
  }
  const nft = (args: readonly string[], input = ""): string =>
    execFileSync("ip", ["netns", "exec", netns, "nft", ...args], { input }).toString();
  nft(["-f", "-"], COUNTERS);
  const server = startNode(netns, SERVER, addresses.slice(0, 1));
  await nextLine(server);
  return {
    netns,
    packets: () =>
      ["four", "six"].flatMap((set) => {
        const output = nft(["-j", "list", "set", "inet", "outside", set]);
        nft(["flush", "set", "inet", "outside", set]);
        return readDestinations(output);
      }),
    answer: (name, answers) => void server.stdin?.write(`${JSON.stringify({ name, addresses: answers })}\n`),
    asked: async () => {
      const line = nextLine(server);
      server.stdin?.write("{}\n");
      return JSON.parse(await line) as readonly string[];
    },
    [Symbol.asyncDispose]: async () => {
      const ended = once(server, "exit");
      server.stdin?.end();
      await ended;
      await world[Symbol.asyncDispose]();
    },
  };
}

interface SetListing {
  readonly nftables: readonly { readonly set?: { readonly elem?: readonly Element[] } }[];
}
interface Element {
  readonly concat?: readonly (string | number)[];
  readonly elem?: { readonly val?: Element };
}

function readDestinations(output: string): readonly string[] {
  const { nftables } = JSON.parse(output) as SetListing;
  return nftables
    .flatMap(({ set }) => set?.elem ?? [])
    .map((element) => element.concat ?? element.elem?.val?.concat ?? [])
    .map(([address, protocol, port]) => `${address}${port === 0 ? "" : `:${port}`}/${protocol}`)
    .toSorted();
}
