import { damaged } from "./damage.ts";

/** Reads a value of JSON as a `T`, or fails with `ARCHIVE_DAMAGED` naming the field (`snapshots[3].guid`) and its rule. */
export interface Decoder<T> {
  readonly decode: (value: unknown, field: string) => T;
  /** Whether the field may be absent. */
  readonly isOptional?: true;
}

type Shape<T> = { readonly [Name in keyof T]-?: Decoder<Exclude<T[Name], undefined>> };

export function wrongField(field: string, rule: string): Error {
  return damaged(`${field}: ${rule}`, { fault: "wrong field", field });
}

const join = (field: string, name: string): string => (field === "" ? name : `${field}.${name}`);

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** An object of exactly these fields. */
export function fields<T extends object>(shape: Shape<T>): Decoder<T> {
  const decoders = Object.entries(shape) as readonly (readonly [string, Decoder<unknown>])[];
  const known = new Set(decoders.map(([name]) => name));
  return {
    decode: (value, field) => {
      if (!isObject(value)) throw wrongField(field, "is not an object");
      for (const name of Object.keys(value)) if (!known.has(name)) throw wrongField(join(field, name), "is not known");
      const result: Record<string, unknown> = {};
      for (const [name, decoder] of decoders) {
        if (value[name] !== undefined) result[name] = decoder.decode(value[name], join(field, name));
        else if (decoder.isOptional !== true) throw wrongField(join(field, name), "is missing");
      }
      return result as T;
    },
  };
}

export function optional<T>({ decode }: Decoder<T>): Decoder<T> {
  return { decode, isOptional: true };
}

export function nullable<T>({ decode }: Decoder<T>): Decoder<T | null> {
  return { decode: (value, field) => (value === null ? null : decode(value, field)) };
}

export function text(maxLength: number, pattern?: RegExp): Decoder<string> {
  return {
    decode: (value, field) => {
      if (typeof value !== "string") throw wrongField(field, "is not a text");
      if (value.length > maxLength) throw wrongField(field, `is longer than ${maxLength} characters`);
      if (pattern?.test(value) === false) throw wrongField(field, "has a wrong form");
      return value;
    },
  };
}

/** Lower-case hex of so many bytes. */
export const hex = (bytes: number): Decoder<string> => text(2 * bytes, new RegExp(`^[0-9a-f]{${2 * bytes}}$`));

/** A whole number. */
export function integer(least: number, most = Number.MAX_SAFE_INTEGER): Decoder<number> {
  return {
    decode: (value, field) => {
      if (!Number.isSafeInteger(value)) throw wrongField(field, "is not a whole number");
      if ((value as number) < least || (value as number) > most)
        throw wrongField(field, `is not from ${least} to ${most}`);
      return value as number;
    },
  };
}

/** Any finite number from 0 on. */
export const amount: Decoder<number> = {
  decode: (value, field) => {
    if (typeof value !== "number" || !Number.isFinite(value) || value < 0) throw wrongField(field, "is not an amount");
    return value;
  },
};

/** Yes or no, as JSON has it. */
export const flag: Decoder<boolean> = {
  decode: (value, field) => {
    if (typeof value !== "boolean") throw wrongField(field, "is neither true nor false");
    return value;
  },
};

export function oneOf<T extends string | number>(...values: readonly T[]): Decoder<T> {
  return {
    decode: (value, field) => {
      const found = values.find((one) => one === value);
      if (found === undefined) throw wrongField(field, `is not ${values.join(" or ")}`);
      return found;
    },
  };
}

export function list<T>(item: Decoder<T>, maxLength: number): Decoder<readonly T[]> {
  return {
    decode: (value, field) => {
      if (!Array.isArray(value)) throw wrongField(field, "is not a list");
      if (value.length > maxLength) throw wrongField(field, `has more than ${maxLength} entries`);
      return value.map((one, index) => item.decode(one, `${field}[${index}]`));
    },
  };
}

/** Any names with texts. */
export function texts(maxEntries: number, maxLength: number): Decoder<Readonly<Record<string, string>>> {
  const item = text(maxLength);
  return {
    decode: (value, field) => {
      if (!isObject(value)) throw wrongField(field, "is not an object");
      const entries = Object.entries(value);
      if (entries.length > maxEntries) throw wrongField(field, `has more than ${maxEntries} entries`);
      return Object.fromEntries(entries.map(([name, one]) => [name, item.decode(one, join(field, name))]));
    },
  };
}
