import type { Logger } from "pino";
import type { BaseRef } from "../storage/storage.ts";
import type { MemberLifecycle } from "./member-lifecycle.ts";
import { isOf, kindOf, type WarmKind, type WarmMember } from "./member.ts";

const DROP_TIMEOUT_MS = 15_000;

/** The warm sessions that a create can take. Those that leave it are handed over, or removed. */
export class ReadyMembers {
  readonly #members: Pick<MemberLifecycle, "drop" | "isAlive">;
  readonly #log: Logger;
  #ready: readonly WarmMember[] = [];
  /** Raised by each release: what was made or taken up before it is not to be used. */
  #releases = 0;
  /** Removals that run behind a create. */
  readonly #leaving = new Set<Promise<void>>();

  constructor(members: Pick<MemberLifecycle, "drop" | "isAlive">, log: Logger) {
    this.#members = members;
    this.#log = log;
  }

  get all(): readonly WarmMember[] {
    return this.#ready;
  }

  get releases(): number {
    return this.#releases;
  }

  ofKind(base: BaseRef, kind: WarmKind): readonly WarmMember[] {
    return this.#ready.filter((member) => isOf(member, base) && kindOf(member) === kind);
  }

  /** Adds a member that was made or taken up since `begun`, the number of releases then; drops it if another came since. */
  async join(member: WarmMember, begun: number): Promise<void> {
    if (this.#releases === begun) this.#ready = [...this.#ready, member];
    else await this.drop(member);
  }

  /** Takes out a member that is alive. */
  async take(base: BaseRef, kind: WarmKind, call: { readonly signal: AbortSignal }): Promise<WarmMember | undefined> {
    for (;;) {
      const [member] = this.ofKind(base, kind);
      if (member === undefined) return undefined;
      this.#ready = this.#ready.filter((other) => other !== member);
      if (await this.#members.isAlive(member, call)) return member;
      this.dropBehind(member);
    }
  }

  async drop(member: WarmMember): Promise<void> {
    await this.#members.drop(member, { signal: AbortSignal.timeout(DROP_TIMEOUT_MS) }).catch((err: unknown) => {
      this.#log.warn({ err, token: member.token }, "warm session not removed, the next start removes it");
    });
  }

  /** Drops a member without a wait: for creates. */
  dropBehind(member: WarmMember): void {
    const dropped = this.drop(member).finally(() => void this.#leaving.delete(dropped));
    this.#leaving.add(dropped);
  }

  async dropMatching(matches: (member: WarmMember) => boolean): Promise<void> {
    const going = this.#ready.filter(matches);
    this.#ready = this.#ready.filter((member) => !going.includes(member));
    await Promise.all(going.map((member) => this.drop(member)));
  }

  /** Drops those that match, and has what is being made now dropped when it joins. */
  async release(matches: (member: WarmMember) => boolean): Promise<void> {
    this.#releases += 1;
    await this.dropMatching(matches);
  }

  /** Settles when the removals behind creates that have begun so far have ended. */
  async dropped(): Promise<void> {
    await Promise.all(this.#leaving);
  }
}
