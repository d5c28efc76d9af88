/** A range of IPv4 addresses, as numbers, both ends included. */
export interface AddressRange {
  readonly first: number;
  readonly last: number;
}

const OCTET = /^(?:0|[1-9]\d{0,2})$/;

/** The address as a number; undefined for anything but four plain decimal octets. */
export function parseAddress(text: string): number | undefined {
  const octets = text.split(".");
  if (octets.length !== 4 || !octets.every((octet) => OCTET.test(octet) && Number(octet) <= 255)) return undefined;
  return octets.reduce((sum, octet) => sum * 256 + Number(octet), 0);
}

export function formatAddress(address: number): string {
  return [24, 16, 8, 0].map((shift) => String((address >>> shift) & 255)).join(".");
}

/** The range of `a.b.c.d` or `a.b.c.d/n`; undefined where it is neither. */
export function parseRange(text: string): AddressRange | undefined {
  const [base = "", prefix, ...rest] = text.split("/");
  const address = parseAddress(base);
  if (address === undefined || rest.length > 0) return undefined;
  if (prefix === undefined) return { first: address, last: address };
  if (!/^\d{1,2}$/.test(prefix) || Number(prefix) > 32) return undefined;
  const size = 2 ** (32 - Number(prefix));
  const first = Math.floor(address / size) * size;
  return { first, last: first + size - 1 };
}

export function isWithin(address: number, ranges: readonly AddressRange[]): boolean {
  return ranges.some(({ first, last }) => address >= first && address <= last);
}

/**
 * What is not the public internet: this network, private, shared (CGNAT and a cloud's metadata at 100.100.100.200),
 * loopback, link-local with the metadata addresses, special and documentation ranges, multicast and reserved. It includes
 * 198.18.0.0/15, where the links of sessions are.
 */
export const CLOSED_RANGES: readonly string[] = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/3",
];

const CLOSED = CLOSED_RANGES.flatMap((range) => parseRange(range) ?? []);

/** Whether an address is reachable only where a policy lists it by address. */
export function isClosed(address: number): boolean {
  return isWithin(address, CLOSED);
}
