import type { DescField } from "@bufbuild/protobuf";
import { archiveOf } from "../archive-of.ts";
import type { Aim } from "./aim.ts";
import type { Leaf } from "./tree.ts";

const PATHS = ["a", "/workspace/a", "dir", "dir/b", ".", "/workspace", "new", "dir/new", "/tmp/x", "link"] as const;
const NAMES = ["A", "B", "team", "PATH_X"] as const;
const MIB = 1024n * 1024n;

type Make = (aim: Aim) => Leaf;

const fresh =
  (prefix: string): Make =>
  ({ world }) =>
    `${prefix}-${world.next()}`;

const oneOf =
  (first: Leaf, ...rest: readonly Leaf[]): Make =>
  ({ chance }) =>
    chance.of([first, ...rest]);

/** Empty, new, or one that was used before. */
const key: Make = (aim) => {
  const { chance, world } = aim;
  if (chance.happens(0.5)) return "";
  if (chance.happens(0.2)) return chance.among(world.keys, "fz-key");
  const made = `fz-key-${world.next()}`;
  world.keys.push(made);
  if (world.keys.length > 50) world.keys.shift();
  return made;
};

const snapshot: Make = ({ chance, subject }) => chance.among(subject.snapshots, "");
const path: Make = ({ chance }) => chance.of(PATHS);
const template: Make = ({ chance, world }) => {
  const known = chance.among(world.templates, { name: "mini", digest: "" });
  return known.digest !== "" && chance.happens(0.3) ? `${known.name}@${known.digest}` : known.name;
};

/** A small archive, a part of one, or one that is not. */
const data: Make = ({ chance }) => {
  const whole = archiveOf(
    { path: "bin/", type: "Directory", mode: 0o755 },
    { path: "bin/sh", text: "x".repeat(chance.below(2000)), mode: 0o755 },
    { path: "l", type: "SymbolicLink", linkpath: "../../x" },
  );
  return chance.of([whole, whole.subarray(0, chance.below(whole.length)), Buffer.from("text\n")]);
};

/** By the field's name; a name with its message before it counts first. */
const SOUND: Readonly<Record<string, Make>> = {
  idempotency_key: key,
  turn_key: key,
  session_id: ({ subject }) => subject.sessionId,
  sandbox_id: ({ subject }) => subject.sessionId,
  "CreateSessionRequest.session_id": ({ chance, world }) => (chance.happens(0.5) ? "" : `fz-s-${world.next()}`),
  child_session_ids: fresh("fz-c"),
  snapshot_id: snapshot,
  from_snapshot_id: snapshot,
  to_snapshot_id: snapshot,
  process_id: ({ chance, subject }) => chance.among(subject.processes, "proc-none"),
  tool_call_id: fresh("fz-call"),
  "AttachToolCallRequest.tool_call_id": ({ chance, subject }) => chance.among(subject.toolCalls, "fz-call-1"),
  "CancelToolCallRequest.tool_call_id": ({ chance, subject }) => chance.among(subject.toolCalls, "fz-call-1"),
  tool_name: ({ tool }) => tool.name,
  expected_generation: ({ subject }) => BigInt(subject.generation),
  base: template,
  template,
  name: fresh("fz-name"),
  "ImportTemplateHeader.name": ({ chance }) => chance.of(["fz-t1", "fz-t2", "fz-t3"]),
  "DeleteTemplateRequest.name": ({ chance, world }) =>
    chance.among(world.templates.slice(1), { name: "fz-t1", digest: "" }).name,
  digest: ({ chance, world }) => chance.among(world.templates, { name: "", digest: "0".repeat(64) }).digest,
  path,
  // The directory that everything is in stays, mostly.
  "RemoveRequest.path": oneOf("a", "dir", "new", "dir/new"),
  source: oneOf("a", "dir", "new", "link"),
  destination: path,
  cwd: oneOf("/workspace", "/", ""),
  binary: oneOf("cat", "/bin/true", "sh", "no-such-program"),
  args: oneOf("-c", "true", "x"),
  page_token: ({ chance, world }) => (chance.happens(0.6) ? "" : chance.among(world.pageTokens, "")),
  page_size: oneOf(0n, 1n, 2n, 1000n),
  count: oneOf(0n, 1n, 2n),
  quota_bytes: oneOf(0n, 64n * MIB),
  cpus: oneOf(0, 0.5, 1),
  memory_bytes: oneOf(0n, 256n * MIB),
  pids: oneOf(0n, 100n),
  output_bytes: oneOf(0n, 1000n),
  ports: oneOf(80n, 8080n),
  port: oneOf(80n, 8080n),
  expose_port: oneOf(0n, 8080n),
  signal: oneOf(0n, 9n, 15n, 64n),
  columns: oneOf(1n, 80n, 1000n),
  rows: oneOf(1n, 24n, 1000n),
  offset: oneOf(0n, 0n, 1n, 5n),
  stdout_offset: oneOf(0n, 1n),
  stderr_offset: oneOf(0n, 1n),
  limit_bytes: oneOf(0n, 1n, 100n),
  max_text_bytes: oneOf(0n, 100n),
  mode: oneOf(0n, 0o644n, 0o755n),
  data,
  stdin: ({ chance }) => chance.bytes(chance.below(20)),
  excludes: oneOf("*.o", "dir/*"),
  allow_list: oneOf("example.org", "*.example.org", "192.0.2.1", "192.0.2.0/24"),
  deny_list: oneOf("example.net", "198.51.100.0/24"),
  instance_id: ({ chance, world }) => chance.among(world.instances, "local-1"),
  image: oneOf("", "image-2"),
  seconds: oneOf(1n, 2n, 60n),
  "CreateSessionRequest.seconds": oneOf(600n, 3600n),
  nanos: oneOf(0n, 500_000_000n),
};

/** A value that fits the field; undefined if nothing is known of its name. */
export function soundLeaf(field: DescField, aim: Aim): Leaf | undefined {
  return (SOUND[`${field.parent.name}.${field.name}`] ?? SOUND[field.name])?.(aim);
}

export const soundName = ({ chance }: Aim): string => chance.of(NAMES);

export const soundText = ({ chance }: Aim): string => chance.of(["x", "value", "Grün", ""]);
