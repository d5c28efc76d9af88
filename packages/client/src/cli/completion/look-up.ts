import { SnapshotKind } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import type { TurnboxClients } from "../../client.ts";
import { sessionPart } from "../../turnbox/sandbox-reference.ts";
import type { Invocation } from "../invocation.ts";
import { listProcesses } from "../process/resolve-process.ts";
import { listInstances } from "../resolve/list-instances.ts";
import { listSnapshots } from "../../sandbox/turn/list-snapshots.ts";
import { listSandboxes, openSandbox } from "../resolve/resolve-sandbox.ts";
import type { Candidate } from "./complete.ts";
import type { TypedLine } from "./parse-words.ts";

interface Question {
  readonly server: TurnboxClients;
  readonly line: TypedLine;
  readonly invocation: Invocation;
}

type Answer = (question: Question) => Promise<readonly Candidate[]>;

/** Who knows what an argument of this name could be. */
const ANSWERS: Readonly<Record<string, Answer>> = {
  id: sandboxes,
  source: places,
  destination: places,
  snapshot: snapshots,
  from: snapshots,
  to: snapshots,
  proc: processes,
  instance: instances,
  template: templates,
};

/** Asks the server, and the host of a sandbox, for what could stand here; nothing where nobody knows. */
export async function lookUp(
  kind: string | undefined,
  line: TypedLine,
  invocation: Invocation,
): Promise<readonly Candidate[]> {
  const answer = kind !== undefined && Object.hasOwn(ANSWERS, kind) ? ANSWERS[kind] : undefined;
  if (answer === undefined) return [];
  using server = await invocation.server(line.server);
  return await answer({ server, line, invocation });
}

/** By name and by the short part of the id; by the whole id for whoever has begun to type one. */
async function sandboxes({ server, line, invocation }: Question): Promise<readonly Candidate[]> {
  const { sandboxes: all } = await listSandboxes(server, invocation);
  return all
    .filter(
      ({ sandboxId, name }) => ![name, sandboxId, sessionPart(sandboxId)].some((one) => line.operands.includes(one)),
    )
    .flatMap(({ sandboxId, name }) => {
      if (line.current.includes(":")) return [{ value: sandboxId, note: name }];
      const short = { value: sessionPart(sandboxId), note: name };
      return name === "" ? [short] : [{ value: name, note: sessionPart(sandboxId) }, short];
    });
}

/** One end of a copy: a sandbox and a colon. What is here is left to the shell. */
async function places(question: Question): Promise<readonly Candidate[]> {
  const { current } = question.line;
  if (/[:/.]/.test(current)) return [];
  return (await sandboxes(question)).map(({ value, note }) => ({ value: `${value}:`, note }));
}

/** Turns by number, the newest first; names of named ones. */
async function snapshots({ server, line, invocation }: Question): Promise<readonly Candidate[]> {
  const [id] = line.operands;
  if (id === undefined) return [];
  using sandbox = await openSandbox(server, id, invocation);
  const all = await listSnapshots(sandbox, invocation);
  return all.toReversed().flatMap(({ turnNumber, turnKey, kind, name, snapshotId }) => {
    if (turnNumber > 0) return [{ value: String(turnNumber), note: turnKey === "" ? snapshotId : turnKey }];
    return kind === SnapshotKind.NAMED && name !== "" ? [{ value: name, note: snapshotId }] : [];
  });
}

async function processes({ server, line, invocation }: Question): Promise<readonly Candidate[]> {
  const [id] = line.operands;
  if (id === undefined) return [];
  using sandbox = await openSandbox(server, id, invocation);
  const all = await listProcesses(sandbox, invocation);
  return all.map(({ processId, binary, args }) => ({ value: processId, note: [binary, ...args].join(" ") }));
}

async function instances({ server, invocation }: Question): Promise<readonly Candidate[]> {
  const all = await listInstances(server, invocation);
  return all.map(({ instanceId, health }) => ({ value: instanceId, note: health }));
}

async function templates({ server, invocation }: Question): Promise<readonly Candidate[]> {
  const { templates: all } = await server.sandboxes.listTemplates({}, { signal: invocation.signal });
  const names = [...new Set(all.map(({ name }) => name))];
  return names.map((name) => ({ value: name, note: "" }));
}
