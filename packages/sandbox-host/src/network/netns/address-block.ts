import { formatAddress, parseAddress } from "../../network-policy/address.ts";

/**
 * The addresses of a host: one of 32 blocks of 198.18.0.0/15, which is not routed anywhere. Its first link is the uplink, each
 * further one is a session's. A link has four addresses: the second is the router's and the third the session's.
 */
export interface AddressBlock {
  readonly range: string;
  /** The uplink's ends. */
  readonly machine: string;
  readonly router: string;
  readonly links: number;
  link(slot: number): Link;
  /** The slot of a link by the address of the router's end; undefined for any other address. */
  slotOf(gateway: string): number | undefined;
}

export interface Link {
  readonly gateway: string;
  readonly address: string;
  /** Locally administered. */
  readonly mac: string;
}

const FIRST = 198 * 2 ** 24 + 18 * 2 ** 16;
const BLOCK_SIZE = 4096;
const LINK_SIZE = 4;
export const BLOCKS = 32;

export function createAddressBlock(index: number): AddressBlock {
  const first = FIRST + index * BLOCK_SIZE;
  const at = (offset: number): string => formatAddress(first + offset);
  return {
    range: `${at(0)}/20`,
    machine: at(1),
    router: at(2),
    links: BLOCK_SIZE / LINK_SIZE - 1,
    link: (slot) => ({
      gateway: at(slot * LINK_SIZE + 1),
      address: at(slot * LINK_SIZE + 2),
      mac: `02:74:62:00:${hex(slot >> 8)}:${hex(slot & 255)}`,
    }),
    slotOf: (gateway) => {
      const offset = (parseAddress(gateway) ?? 0) - first;
      return offset > LINK_SIZE && offset < BLOCK_SIZE && offset % LINK_SIZE === 1
        ? (offset - 1) / LINK_SIZE
        : undefined;
    },
  };
}

/** The block that an address is in; undefined if it is in none. */
export function blockIndexOf(text: string): number | undefined {
  const offset = (parseAddress(text) ?? 0) - FIRST;
  return offset >= 0 && offset < BLOCKS * BLOCK_SIZE ? Math.floor(offset / BLOCK_SIZE) : undefined;
}

function hex(byte: number): string {
  return byte.toString(16).padStart(2, "0");
}
