import { type Fork, SandboxError } from "@turnbox/client";
import { z } from "zod";
import type { Workspace } from "../workspace.ts";
import { defineTool, REFERENCE, toTarget } from "./own-tool.ts";

const MAX_COUNT = 10;
const SANDBOX_ID = z.string().min(1).max(256);

export const FORK = defineTool({
  name: "fork",
  title: "Fork the sandbox",
  description:
    "Makes copies of the sandbox's files, each in a sandbox of its own, from now or from a turn. Processes are not copied. Calls go on " +
    "in the present sandbox until `use_sandbox` names another.",
  hints: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  input: z.strictObject({
    count: z.int().min(1).max(MAX_COUNT).optional().describe("How many; 1 unless given."),
    from: REFERENCE.optional().describe("A turn's number, or the id of a snapshot; the present files unless given."),
  }),
  run: async ({ count = 1, from }, { workspace, toolCallId, signal }) => {
    if (count > workspace.room) {
      throw new SandboxError("SESSION_LIMIT_REACHED", `there may be ${String(workspace.room)} more forks`);
    }
    const sandbox = await workspace.current({ signal });
    const forks = await sandbox.fork({
      count,
      idempotencyKey: toolCallId,
      signal,
      ...(from === undefined ? {} : { from: toTarget(from) }),
    });
    const children = forks.flatMap((fork) => (fork.sandbox === undefined ? [] : [fork.sandbox]));
    await workspace.adopt(children);
    const failures = forks.flatMap(failureOf);
    const [first] = failures;
    if (children.length === 0 && first !== undefined) throw first;
    const ids = children.map(({ id }) => id);
    return {
      text: [
        `Forks of ${sandbox.id}:`,
        ...ids,
        ...failures.map(({ reason, message }) => `not made: ${reason}: ${message}`),
      ].join("\n"),
      facts: {
        parent: sandbox.id,
        sandboxes: ids,
        failures: failures.map(({ reason, message }) => ({ reason, message })),
      },
    };
  },
});

const failureOf = (fork: Fork): readonly SandboxError[] => (fork.error === undefined ? [] : [fork.error]);

export const USE_SANDBOX = defineTool({
  name: "use_sandbox",
  title: "Work in another sandbox",
  description: "Says in which sandbox the following calls work: the main one, or one that `fork` made.",
  hints: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  input: z.strictObject({ sandbox: SANDBOX_ID.describe("Its id, as `fork` and `sandbox_info` name it.") }),
  run: async ({ sandbox: id }, { workspace, signal }) => {
    await workspace.current({ signal });
    workspace.use(id);
    return { text: `Calls go to ${id} from now on.`, facts: { sandbox: id } };
  },
});

export const DISCARD_FORK = defineTool({
  name: "discard_fork",
  title: "Discard a fork",
  description:
    "Destroys a sandbox that `fork` made, with its files and turns. Calls then go to the main sandbox if they went there.",
  hints: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  input: z.strictObject({ sandbox: SANDBOX_ID.describe("The id of the fork.") }),
  run: async ({ sandbox: id }, { workspace, signal }) => {
    await workspace.discard(id, { signal });
    const current = await workspace.current({ signal });
    return { text: `${id} is destroyed. Calls go to ${current.id}.`, facts: { discarded: id, current: current.id } };
  },
});

export const SANDBOX_INFO = defineTool({
  name: "sandbox_info",
  title: "Describe the sandbox",
  description:
    "Describes the present sandbox (state, base, turns, space, when it ends, what it can do) and lists its forks.",
  hints: { readOnlyHint: true, openWorldHint: false },
  input: z.strictObject({}),
  run: async (_, { workspace, signal }) => {
    const sandbox = await workspace.current({ signal });
    const { id, name, state, generation, base, turnCount, spaceUsedBytes, expiresAt, capabilities } =
      await sandbox.info({ signal });
    const facts = {
      sandbox: id,
      name,
      state,
      generation,
      base,
      turns: turnCount,
      spaceUsedBytes,
      expiresAt: expiresAt?.toISOString(),
      workingDirectory: "/workspace",
      snapshots: capabilities.snapshots,
      runtime: capabilities.runtime,
      sandboxes: describeMembers(workspace),
    };
    return { text: JSON.stringify(facts, undefined, 2), facts };
  },
});

const describeMembers = (workspace: Workspace) =>
  workspace.members().map(({ sandbox, kind, isCurrent }) => ({ sandbox: sandbox.id, kind, isCurrent }));
