import { invalidArgument } from "@turnbox/client/internal";

/** A profile as it was written, before any of it is checked. */
export type RawFields = Readonly<Record<string, unknown>>;

/** The fields that are there; others than the known ones are refused, so that a slip of the pen is reported. */
export function fieldsOf(field: string, value: unknown, known: readonly string[]): RawFields {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw invalidArgument(field, "must be an object");
  const entries = Object.entries(value).filter(([, one]) => one !== undefined);
  const unknown = entries.find(([name]) => !known.includes(name));
  if (unknown !== undefined)
    throw invalidArgument(`${field}.${unknown[0].slice(0, 64)}`, `is not known; known are ${known.join(", ")}`);
  return Object.fromEntries(entries);
}

export function parseChoice<Choice extends string>(field: string, value: unknown, choices: readonly Choice[]): Choice {
  const choice = choices.find((one) => one === value);
  if (choice !== undefined) return choice;
  throw invalidArgument(field, `must be one of ${choices.join(", ")}`);
}

export function parseBoolean(field: string, value: unknown): boolean {
  if (typeof value === "boolean") return value;
  throw invalidArgument(field, "must be true or false");
}

export interface TextRule {
  readonly maxBytes: number;
  readonly empty: "allowed" | "refused";
}

export function parseText(field: string, value: unknown, { maxBytes, empty }: TextRule): string {
  if (typeof value !== "string") throw invalidArgument(field, "must be a string");
  if (Buffer.byteLength(value) > maxBytes) throw invalidArgument(field, `must have at most ${maxBytes} bytes`);
  if (empty === "refused" && value === "") throw invalidArgument(field, "must not be empty");
  if (hasControl(value)) throw invalidArgument(field, "must have no control characters");
  return value;
}

/** A directory inside a runtime; empty means the provider's own. */
export function parseDirectory(field: string, value: unknown): string {
  const text = parseText(field, value, { maxBytes: 1024, empty: "allowed" });
  if (text === "") return text;
  if (!text.startsWith("/")) throw invalidArgument(field, "must be absolute");
  const names = text.split("/").filter((name) => name !== "");
  if (names.length === 0) throw invalidArgument(field, "must not be the root of the filesystem");
  if (names.some((name) => name === "." || name === "..")) throw invalidArgument(field, "must have no . or .. in it");
  return `/${names.join("/")}`;
}

export function parseTexts(field: string, value: unknown): readonly string[] {
  if (!Array.isArray(value)) throw invalidArgument(field, "must be a list of strings");
  return value.map((one, at) => parseText(`${field}[${at}]`, one, { maxBytes: 512, empty: "refused" }));
}

const hasControl = (text: string): boolean => /[\u0000-\u001f\u007f]/.test(text);
