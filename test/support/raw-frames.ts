import { execFileSync } from "node:child_process";

/** An Ethernet frame that a compromised sandbox might write to its link. */
export interface FrameHeader {
  readonly fromMac: string;
  readonly toMac: string;
}

interface Datagram extends FrameHeader {
  readonly from: string;
  readonly to: string;
  readonly port: number;
}

const ETHERTYPE = { ipv4: 0x0800, arp: 0x0806, vlan: 0x8100, ipv6: 0x86dd } as const;
const UDP = 17;

const macBytes = (mac: string): Buffer => Buffer.from(mac.replaceAll(":", ""), "hex");
const ipv4Bytes = (address: string): Buffer => Buffer.from(address.split(".").map(Number));

function ethernet({ fromMac, toMac }: FrameHeader, type: number, payload: Buffer): Buffer {
  return Buffer.concat([macBytes(toMac), macBytes(fromMac), Buffer.from([type >> 8, type & 255]), payload]);
}

function udp(port: number): Buffer {
  const datagram = Buffer.alloc(12);
  datagram.writeUInt16BE(4444, 0);
  datagram.writeUInt16BE(port, 2);
  datagram.writeUInt16BE(datagram.length, 4);
  return datagram;
}

function ipv4({ from, to, port }: Datagram): Buffer {
  const body = udp(port);
  const head = Buffer.alloc(20);
  head.writeUInt8(0x45, 0);
  head.writeUInt16BE(head.length + body.length, 2);
  head.writeUInt8(64, 8);
  head.writeUInt8(UDP, 9);
  ipv4Bytes(from).copy(head, 12);
  ipv4Bytes(to).copy(head, 16);
  let sum = 0;
  for (let at = 0; at < head.length; at += 2) sum += head.readUInt16BE(at);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  head.writeUInt16BE(~sum & 0xffff, 10);
  return Buffer.concat([head, body]);
}

export const ipv4Frame = (datagram: Datagram): Buffer => ethernet(datagram, ETHERTYPE.ipv4, ipv4(datagram));

/** The same behind a tag of a virtual network. */
export const taggedFrame = (datagram: Datagram): Buffer =>
  ethernet(datagram, ETHERTYPE.vlan, Buffer.concat([Buffer.from([0, 7, 8, 0]), ipv4(datagram)]));

/** Addresses as 32 hexadecimal digits. */
export function ipv6Frame(datagram: Datagram): Buffer {
  const body = udp(datagram.port);
  const head = Buffer.alloc(8);
  head.writeUInt8(0x60, 0);
  head.writeUInt16BE(body.length, 4);
  head.writeUInt8(UDP, 6);
  head.writeUInt8(64, 7);
  const addresses = [datagram.from, datagram.to].map((address) => Buffer.from(address, "hex"));
  return ethernet(datagram, ETHERTYPE.ipv6, Buffer.concat([head, ...addresses, body]));
}

/** Says, unasked and to everybody, that `address` is at `fromMac`. */
export function arpClaim(fromMac: string, address: string): Buffer {
  const place = Buffer.concat([macBytes(fromMac), ipv4Bytes(address)]);
  const reply = Buffer.from([0, 1, 8, 0, 6, 4, 0, 2]);
  return ethernet({ fromMac, toMac: "ff:ff:ff:ff:ff:ff" }, ETHERTYPE.arp, Buffer.concat([reply, place, place]));
}

/** AF_PACKET is 17, ETH_P_ALL in network order 0x0300. */
const SENDER = `
my ($index) = @ARGV;
socket(my $socket, 17, 3, 0x0300) or die "socket: $!";
my $to = pack("S S i S C C a8", 17, 0x0300, $index, 0, 0, 6, "");
while (<STDIN>) { chomp; defined send($socket, pack("H*", $_), 0, $to) or die "send: $!"; }
`;

/** Writes frames to an interface of a namespace, null for the machine's own, as they are. */
export function sendFrames(netns: string | null, device: string, frames: readonly Buffer[]): void {
  const within = netns === null ? [] : ["-n", netns];
  const [link] = JSON.parse(
    execFileSync("ip", [...within, "-j", "link", "show", "dev", device]).toString(),
  ) as readonly {
    readonly ifindex: number;
  }[];
  const perl = ["perl", "-e", SENDER, String(link?.ifindex)];
  const [program = "", ...args] = netns === null ? perl : ["ip", "netns", "exec", netns, ...perl];
  execFileSync(program, args, { input: frames.map((frame) => `${frame.toString("hex")}\n`).join("") });
}
