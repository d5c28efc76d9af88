import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, jest } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import fc from "fast-check";
import { SIGNAL, startTestHost, type TestHost } from "../compose.suite.ts";
import type { Session } from "../session/session.ts";
import { rollBack, takeSnapshot } from "../turn/turn.suite.ts";

jest.setTimeout(600_000);

/** The full form looks at other sequences each time; a failure prints its seed. */
const EFFORT = process.env["TURNBOX_FULL"] === "1" ? { numRuns: 100 } : { numRuns: 12, seed: 20_300_102 };

type Step =
  | { readonly kind: "call" | "cut" | "seal" | "undo" | "restart" }
  | { readonly kind: "again" | "rollback"; readonly which: number }
  | { readonly kind: "reboot" | "storage"; readonly files: "lost" | "there" };

const files = fc.constantFrom("lost" as const, "there" as const);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Step>({ kind: "call" }) },
  { weight: 4, arbitrary: fc.nat(30).map((which): Step => ({ kind: "again", which })) },
  { weight: 3, arbitrary: fc.constant<Step>({ kind: "seal" }) },
  { weight: 2, arbitrary: fc.nat(10).map((which): Step => ({ kind: "rollback", which })) },
  { weight: 1, arbitrary: fc.constantFrom<Step>({ kind: "undo" }, { kind: "restart" }, { kind: "cut" }) },
  { weight: 1, arbitrary: files.map((lost): Step => ({ kind: "reboot", files: lost })) },
  { weight: 1, arbitrary: files.map((lost): Step => ({ kind: "storage", files: lost })) },
);

/** A snapshot, with the calls that are in it. */
interface Point {
  readonly id: string;
  readonly line: readonly string[];
}

interface Call {
  readonly id: string;
  readonly cmd: string;
}

/** What should be: which calls are on the line of the live files, and what is known of them. */
interface Model {
  line: readonly string[];
  /** The line at the last snapshot of the live files. */
  safe: readonly string[];
  readonly snapshots: Point[];
  undo: Point | null;
  readonly calls: Call[];
  readonly cut: Set<string>;
  readonly doubted: Set<string>;
}

class World {
  test: TestHost;
  session: Session;
  boots = 1;
  readonly model: Model = {
    line: [],
    safe: [],
    snapshots: [],
    undo: null,
    calls: [],
    cut: new Set(),
    doubted: new Set(),
  };

  constructor(test: TestHost, session: Session) {
    this.test = test;
    this.session = session;
  }

  async path(): Promise<string> {
    const { path } = await this.test.storage.mountHead(this.session.head, { signal: SIGNAL });
    return join(path, "workspace/log");
  }

  async lines(): Promise<readonly string[]> {
    const text = await readFile(await this.path(), "utf8").catch(() => "");
    return text.split("\n").filter((line) => line !== "");
  }

  ask(id: string, cmd: string): Promise<string> {
    const call = { callId: id, toolName: "bash", parameters: { cmd }, stdin: new Uint8Array() };
    return this.test.host.executeTool(this.session, { ...call, expectedGeneration: undefined, kill: SIGNAL }).then(
      ({ from }) => from,
      (thrown: unknown) => SandboxError.from(thrown).reason,
    );
  }

  async restart(bootId: string): Promise<void> {
    this.test = await this.test.restart({ bootId });
    const again = this.test.host.registry.find(this.session.row.id);
    if (again === undefined) throw new Error("the session is gone");
    this.session = again;
  }

  /** The files go back to the last snapshot, as far as a crash may take them. */
  async lose(what: "lost" | "there"): Promise<void> {
    const { model } = this;
    if (what === "lost") await writeFile(await this.path(), model.safe.map((id) => `${id}\n`).join(""));
    for (const id of model.line) if (!model.safe.includes(id)) model.doubted.add(id);
  }
}

async function call(world: World, ending: "ends" | "is cut off"): Promise<void> {
  const { model } = world;
  const id = `c${model.calls.length}`;
  const cmd = `append /workspace/log ${id}${ending === "ends" ? "" : " hang"}`;
  model.calls.push({ id, cmd });
  const running = world.ask(id, cmd);
  if (ending === "is cut off") {
    while (!(await world.lines()).includes(id)) await new Promise((resolve) => void setImmediate(resolve));
    await world.restart(`boot ${world.boots}`);
    model.cut.add(id);
  }
  const answer = await running;
  if (ending === "ends") expect(answer).toBe("run");
  model.line = [...model.line, id];
}

async function goBack(world: World, target: Point | null | undefined): Promise<void> {
  if (target === null || target === undefined) return;
  const { model } = world;
  const { undoSnapshotId } = await rollBack(world.test, world.session, target.id);
  model.undo = { id: undoSnapshotId, line: model.line };
  model.line = target.line;
  model.safe = target.line;
}

async function seal({ test, session, model }: World): Promise<void> {
  const { id } = await takeSnapshot(test, session, "x");
  model.snapshots.push({ id, line: model.line });
  model.safe = model.line;
}

async function perform(world: World, step: Step): Promise<void> {
  const { model } = world;
  const nth = <Item>(items: readonly Item[], which: number): Item | undefined =>
    items[which % Math.max(1, items.length)];
  switch (step.kind) {
    case "call":
      await call(world, "ends");
      return;
    case "cut":
      await call(world, "is cut off");
      return;
    case "again":
      await checkAgain(world, nth(model.calls, step.which));
      return;
    case "seal":
      await seal(world);
      return;
    case "rollback":
      await goBack(world, nth(model.snapshots, step.which));
      return;
    case "undo":
      await goBack(world, model.undo);
      return;
    case "restart":
      await world.restart(`boot ${world.boots}`);
      return;
    case "reboot":
      await world.lose(step.files);
      world.boots += 1;
      await world.restart(`boot ${world.boots}`);
      return;
    case "storage":
      await world.lose(step.files);
      world.test.storage.loseMounts([world.session.head]);
      await world.restart(`boot ${world.boots}`);
      return;
  }
}

function expected(model: Model, id: string): string {
  if (model.cut.has(id)) return "OUTCOME_UNKNOWN";
  if (!model.line.includes(id)) return "CALL_ROLLED_BACK";
  return model.doubted.has(id) ? "OUTCOME_UNKNOWN" : "store";
}

/** The answer is the model's, nothing runs a second time, and the files bear the answer out. */
async function checkAgain(world: World, asked: Call | undefined): Promise<void> {
  if (asked === undefined) return;
  const { id, cmd } = asked;
  const answer = await world.ask(id, cmd);
  expect([id, answer]).toEqual([id, expected(world.model, id)]);
  const count = (await world.lines()).filter((line) => line === id).length;
  if (answer === "store") expect([id, count]).toEqual([id, 1]);
  if (answer === "CALL_ROLLED_BACK") expect([id, count]).toEqual([id, 0]);
  expect(count).toBeLessThanOrEqual(1);
}

describe("tool calls over rollbacks, undos, restarts, reboots and deaths of the storage", () => {
  it("have their effect exactly once, or are unknown or rolled back, as a model says", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 6, maxLength: 24 }), async (steps) => {
        const test = await startTestHost({}, { bootId: "boot 1" });
        const world = new World(test, await test.create());
        try {
          for (const each of steps) await perform(world, each);
          for (const made of world.model.calls) await checkAgain(world, made);
        } finally {
          await world.test[Symbol.asyncDispose]();
        }
      }),
      EFFORT,
    );
  });
});
