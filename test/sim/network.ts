import type { Timeline } from "./timeline.ts";

export type CutKind = "refused" | "silent";

interface Cut {
  readonly kind: CutKind;
  readonly untilMs: number;
}

/** Which orchestrator reaches which instance. Nothing passes a cut, in either direction. */
export class Network {
  readonly #timeline: Timeline;
  readonly #cuts = new Map<string, Cut>();

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  cut(between: { readonly orchestrator: number; readonly instanceId: string }, kind: CutKind, forMs: number): void {
    this.#cuts.set(pair(between), { kind, untilMs: this.#timeline.nowMs + forMs });
  }

  stateOf(between: { readonly orchestrator: number; readonly instanceId: string }): "open" | CutKind {
    const cut = this.#cuts.get(pair(between));
    return cut === undefined || cut.untilMs <= this.#timeline.nowMs ? "open" : cut.kind;
  }

  heal(): void {
    this.#cuts.clear();
  }
}

const pair = (between: { readonly orchestrator: number; readonly instanceId: string }): string =>
  `${String(between.orchestrator)} ${between.instanceId}`;
