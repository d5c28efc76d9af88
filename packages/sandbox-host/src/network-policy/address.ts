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

/** The range of `a.b.c.d` or `a.b.c.d/n`; undefined for anything else. */
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
