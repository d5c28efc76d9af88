import { parseRange } from "./address.ts";
import { RangeSet } from "./range-set.ts";

/** Ranges that are not the public internet and that an operator may let policies open. */
export const PRIVATE_RANGES: readonly string[] = [
  "10.0.0.0/8",
  "100.64.0.0/10",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.51.100.0/24",
  "203.0.113.0/24",
];

/**
 * Services of clouds that hand out credentials: EC2, GCP, Azure, OpenStack and most others at 169.254.169.254, containers of
 * ECS and EKS in 169.254.170.0/24, Scaleway, Tencent, Alibaba, Oracle, and Azure's wire server, which has a public address.
 */
export const METADATA_RANGES: readonly string[] = [
  "169.254.169.0/24",
  "169.254.170.0/24",
  "169.254.42.42/32",
  "169.254.0.23/32",
  "100.100.100.200/32",
  "192.0.0.192/32",
  "168.63.129.16/32",
];

/** This network, loopback, the links of sandboxes, multicast, reserved and broadcast: no setting opens them. */
export const UNREACHABLE_RANGES: readonly string[] = ["0.0.0.0/8", "127.0.0.0/8", "198.18.0.0/15", "224.0.0.0/3"];

const PRIVATE = RangeSet.of(PRIVATE_RANGES);
const METADATA = RangeSet.of(METADATA_RANGES);
const UNREACHABLE = RangeSet.of(UNREACHABLE_RANGES);

/** Everything that is not the public internet. A policy opens a part of it only by an entry that lies wholly in it. */
export const CLOSED: RangeSet = PRIVATE.with(METADATA).with(UNREACHABLE);

/** The host's settings that open closed ranges to policies. */
export interface BoundsSettings {
  readonly privateRanges: readonly string[];
  readonly allowMetadata: boolean;
}

/** A range that no policy of the host opens, and the setting that could open it; null if no setting could. */
export interface ShutRange {
  readonly range: string;
  readonly setting: keyof BoundsSettings | null;
}

/** What the policies of a host can open at all. The operator decides it, and no tenant. */
export class NetworkBounds {
  /** Closed addresses that no policy of the host opens. */
  readonly shut: RangeSet;
  readonly #opened: RangeSet;

  constructor({ privateRanges, allowMetadata }: BoundsSettings) {
    const opened = RangeSet.of(privateRanges).without(METADATA).without(UNREACHABLE);
    this.#opened = allowMetadata ? opened.with(METADATA) : opened;
    this.shut = CLOSED.without(this.#opened);
  }

  shutRanges(): readonly ShutRange[] {
    const by = (set: RangeSet, setting: ShutRange["setting"]): readonly ShutRange[] =>
      set
        .without(this.#opened)
        .cidrs()
        .map((range) => ({ range, setting }));
    return [...by(METADATA, "allowMetadata"), ...by(PRIVATE, "privateRanges"), ...by(UNREACHABLE, null)];
  }

  /** Whether an entry of an allow list opens nothing, because it lies wholly in what is shut. Names always open something. */
  isShut(entry: string): boolean {
    const range = parseRange(entry);
    return range !== undefined && this.shut.covers(range);
  }
}

/** The rule that keeps an address shut, for messages. */
export function shutRule(entry: string): string {
  const range = parseRange(entry);
  if (range !== undefined && METADATA.covers(range))
    return "a metadata address, which the host's setting allowMetadata does not open";
  if (range !== undefined && UNREACHABLE.covers(range)) return "an address that no sandbox reaches";
  return "a private or other special address, which the host's setting privateRanges does not open";
}

/** Why the setting `privateRanges` cannot have an entry; undefined if it can. */
export function privateRangeFault(entry: string): string | undefined {
  const range = parseRange(entry);
  if (range !== undefined && PRIVATE.covers(range)) return undefined;
  return `${JSON.stringify(entry)} is not a range within ${PRIVATE_RANGES.join(", ")}`;
}
