import { inspect } from "node:util";

const REDACTED = "[redacted]";

/**
 * A string that does not print. Whatever turns it into text (a template, JSON, a log line, `console.log`) gets
 * `[redacted]`; only `reveal` gives the value, so each use of it can be found by name.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return REDACTED;
  }

  toJSON(): string {
    return REDACTED;
  }

  [Symbol.toPrimitive](): string {
    return REDACTED;
  }

  [inspect.custom](): string {
    return REDACTED;
  }
}
