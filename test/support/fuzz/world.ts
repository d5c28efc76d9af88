import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

/** A session or sandbox that inputs aim at, with what is known to be in it. */
export interface Subject {
  readonly sessionId: string;
  readonly snapshots: string[];
  readonly processes: string[];
  readonly toolCalls: string[];
  generation: number;
}

export interface KnownTool {
  readonly name: string;
  readonly schema: JsonObject;
}

/** What a method's calls do to their subject decides which one they get. */
export type Role = "steady" | "resting" | "turning" | "spare";

const MOST_KEPT = 32;

export const newSubject = (sessionId: string): Subject => ({
  sessionId,
  snapshots: [],
  processes: [],
  toolCalls: [],
  generation: 1,
});

/** What exists in the service under test, as far as answers told: real targets for the next inputs. */
export class World {
  readonly tools: KnownTool[] = [];
  readonly templates: { readonly name: string; readonly digest: string }[] = [];
  readonly pageTokens: string[] = [];
  readonly keys: string[] = [];
  readonly instances: string[] = [];
  readonly #subjects = new Map<Role, Subject[]>();
  #made = 0;

  subjects(role: Role): Subject[] {
    const found = this.#subjects.get(role) ?? [];
    this.#subjects.set(role, found);
    return found;
  }

  all(): readonly Subject[] {
    return [...this.#subjects.values()].flat();
  }

  /** A number that no input had yet. */
  next(): number {
    this.#made += 1;
    return this.#made;
  }

  /** Takes ids and tokens out of an answer to a call about a subject. */
  learn(subject: Subject, answer: JsonValue): void {
    if (Array.isArray(answer)) for (const each of answer) this.learn(subject, each);
    if (answer === null || typeof answer !== "object" || Array.isArray(answer)) return;
    for (const [name, value] of Object.entries(answer)) {
      if (typeof value === "string") this.#keep(subject, name, value);
      else this.learn(subject, value);
    }
  }

  #keep(subject: Subject, name: string, value: string): void {
    // Names of labels and variables come here too, "constructor" among them, so this is no plain object.
    const room = new Map([
      ["snapshotId", subject.snapshots],
      ["undoSnapshotId", subject.snapshots],
      ["processId", subject.processes],
      ["toolCallId", subject.toolCalls],
      ["nextPageToken", this.pageTokens],
    ]);
    const kept = room.get(name);
    if (kept === undefined || value === "" || kept.includes(value)) return;
    kept.push(value);
    if (kept.length > MOST_KEPT) kept.splice(2, 1);
  }
}
