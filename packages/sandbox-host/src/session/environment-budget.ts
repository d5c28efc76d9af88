import { createHash } from "node:crypto";
import { environmentBytes, SandboxError } from "@turnbox/core";
import type { SessionRow } from "../record/row.ts";

type Environment = SessionRow["env"];

interface Measured {
  readonly hash: string;
  readonly bytes: number;
}

/** Keeps the environments of all sessions within a bound of bytes: they are in memory, and all are read at a start. */
export class EnvironmentBudget {
  readonly #maxBytes: number;
  readonly #measured = new WeakMap<Environment, Measured>();

  /** 0 is no bound. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Throws `MAX_SESSIONS_REACHED` if this one does not fit beside those of the sessions. Equal ones count once. */
  assertRoom(env: Environment, sessions: Iterable<{ readonly row: SessionRow }>): void {
    if (this.#maxBytes === 0 || Object.keys(env).length === 0) return;
    const held = new Map<string, number>();
    for (const { row } of sessions) {
      const { hash, bytes } = this.#measure(row.env);
      held.set(hash, bytes);
    }
    const { hash, bytes } = this.#measure(env);
    const heldBytes = [...held.values()].reduce((sum, size) => sum + size, 0);
    if (held.has(hash) || heldBytes + bytes <= this.#maxBytes) return;
    throw new SandboxError(
      "MAX_SESSIONS_REACHED",
      `the environments of the sessions take ${heldBytes} of ${this.#maxBytes} bytes, and this one has ${bytes}`,
    );
  }

  #measure(env: Environment): Measured {
    const known = this.#measured.get(env);
    if (known !== undefined) return known;
    const hash = createHash("sha256").update(JSON.stringify(env)).digest("hex");
    const measured = { hash, bytes: environmentBytes(env) };
    this.#measured.set(env, measured);
    return measured;
  }
}
