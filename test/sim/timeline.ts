/** Something that happens at a moment of virtual time; it can be called off until then. */
export interface Appointment {
  cancel(): void;
}

interface Entry {
  readonly dueMs: number;
  readonly order: number;
  run: (() => void) | undefined;
}

/**
 * Virtual time: a queue of events that happen one after another, in the order of their time and, at the same time, in
 * the order in which they were planned. Promise callbacks run to their end between two events, so that a run depends on
 * nothing but what was planned.
 */
export class Timeline {
  #nowMs = 0;
  #planned = 0;
  #events = 0;
  readonly #heap: Entry[] = [];

  get nowMs(): number {
    return this.#nowMs;
  }

  /** How many events have happened. */
  get events(): number {
    return this.#events;
  }

  /** Plans `run` in `delayMs` from now. */
  after(delayMs: number, run: () => void): Appointment {
    const entry: Entry = { dueMs: this.#nowMs + Math.max(0, delayMs), order: this.#planned++, run };
    push(this.#heap, entry);
    return {
      cancel: () => {
        entry.run = undefined;
      },
    };
  }

  /** Lets time pass until `untilMs`. `isOver` is asked after each event and ends the run early. */
  async runUntil(untilMs: number, isOver: () => boolean): Promise<void> {
    await settle();
    for (let next = this.#heap[0]; next !== undefined && next.dueMs <= untilMs; next = this.#heap[0]) {
      pop(this.#heap);
      if (next.run === undefined) continue;
      this.#nowMs = next.dueMs;
      this.#events += 1;
      next.run();
      await settle();
      if (isOver()) return;
    }
    this.#nowMs = untilMs;
  }
}

/** Lets promise callbacks that are already due run to their end. */
async function settle(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
}

const isBefore = (a: Entry, b: Entry): boolean => a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order);

function push(heap: Entry[], entry: Entry): void {
  let at = heap.push(entry) - 1;
  while (at > 0) {
    const above = (at - 1) >> 1;
    const parent = heap[above];
    if (parent === undefined || !isBefore(entry, parent)) break;
    heap[at] = parent;
    at = above;
  }
  heap[at] = entry;
}

function pop(heap: Entry[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let at = 0;
  for (;;) {
    const left = 2 * at + 1;
    const right = left + 1;
    const a = heap[left];
    const b = heap[right];
    if (a === undefined) break;
    const below = b !== undefined && isBefore(b, a) ? right : left;
    const child = heap[below];
    if (child === undefined || !isBefore(child, last)) break;
    heap[at] = child;
    at = below;
  }
  heap[at] = last;
}
