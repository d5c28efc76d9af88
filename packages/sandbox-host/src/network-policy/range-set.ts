import { type AddressRange, formatAddress, parseRange } from "./address.ts";

/** A set of IPv4 addresses, as ranges that neither overlap nor touch, in order. */
export class RangeSet {
  readonly #ranges: readonly AddressRange[];

  private constructor(ranges: readonly AddressRange[]) {
    this.#ranges = merged(ranges);
  }

  /** The addresses of all entries that are ranges; other entries are ignored. */
  static of(entries: readonly string[]): RangeSet {
    return new RangeSet(entries.flatMap((entry) => parseRange(entry) ?? []));
  }

  has(address: number): boolean {
    return this.covers({ first: address, last: address });
  }

  /** Whether every address of the range is in the set. */
  covers({ first, last }: AddressRange): boolean {
    return this.#ranges.some((range) => range.first <= first && range.last >= last);
  }

  with(other: RangeSet): RangeSet {
    return new RangeSet([...this.#ranges, ...other.#ranges]);
  }

  without(other: RangeSet): RangeSet {
    return new RangeSet(other.#ranges.reduce((left, hole) => left.flatMap((range) => cut(range, hole)), this.#ranges));
  }

  /** The set in CIDR notation, with as few entries as it takes. */
  cidrs(): readonly string[] {
    return this.#ranges.flatMap((range) => toCidrs(range));
  }
}

function merged(ranges: readonly AddressRange[]): readonly AddressRange[] {
  const out: AddressRange[] = [];
  for (const range of ranges.toSorted((a, b) => a.first - b.first)) {
    const before = out.at(-1);
    if (before === undefined || range.first > before.last + 1) out.push(range);
    else out[out.length - 1] = { first: before.first, last: Math.max(before.last, range.last) };
  }
  return out;
}

/** What is left of a range without a hole. */
function cut({ first, last }: AddressRange, hole: AddressRange): readonly AddressRange[] {
  if (hole.last < first || hole.first > last) return [{ first, last }];
  return [
    ...(hole.first > first ? [{ first, last: hole.first - 1 }] : []),
    ...(hole.last < last ? [{ first: hole.last + 1, last }] : []),
  ];
}

function toCidrs({ first, last }: AddressRange): readonly string[] {
  const out: string[] = [];
  for (let at = first; at <= last; ) {
    let bits = 0;
    while (bits < 32 && at % 2 ** (bits + 1) === 0 && at + 2 ** (bits + 1) - 1 <= last) bits += 1;
    out.push(`${formatAddress(at)}/${String(32 - bits)}`);
    at += 2 ** bits;
  }
  return out;
}
