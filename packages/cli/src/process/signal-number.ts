import { constants } from "node:os";
import { invalidArgument } from "@turnbox/core";

const MAX_SIGNAL = 64;

/** A signal by its number or its name, with or without SIG, in any case. */
export function parseSignal(raw: string): number {
  if (/^\d{1,2}$/.test(raw)) {
    const number = Number(raw);
    if (number >= 1 && number <= MAX_SIGNAL) return number;
  }
  const name = raw.toUpperCase().replace(/^(?!SIG)/, "SIG");
  const found = Object.entries(constants.signals).find(([known]) => known === name);
  if (found === undefined) throw invalidArgument("signal", `${JSON.stringify(raw)} is not a signal like KILL or 9`);
  return found[1];
}
