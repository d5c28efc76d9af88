import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import { takeAim } from "./aim.ts";
import type { Aim } from "./aim.ts";
import { Chance } from "./chance.ts";
import { frame } from "./frame.ts";
import { makeHeaders } from "./headers.ts";
import { makeBranch, makeTree } from "./make-tree.ts";
import { nameOf } from "./methods.ts";
import { toBinaryForm } from "./to-binary.ts";
import { toJsonForm } from "./to-json.ts";
import type { Tree } from "./tree.ts";
import type { Subject, World } from "./world.ts";

export type Protocol = "connect" | "get" | "grpc";

/** Whose token a call carries: the home's, one bound to a sandbox, one that is none, or none. */
export type Credential = "home" | "sandbox" | "forged" | "none";

export interface Form {
  readonly protocol: Protocol;
  readonly http: 1 | 2;
  readonly codec: "json" | "proto";
  /** Whether the form itself is broken at places, beside what the values are. */
  readonly broken: boolean;
}

/** A call as it goes over the wire. */
export interface Input {
  readonly method: DescMethod;
  /** `ToolService/ExecuteTool#17`; with the seed it is the same input again. */
  readonly name: string;
  readonly form: Form;
  readonly trees: readonly Tree[];
  readonly pieces: readonly Uint8Array[];
  readonly headers: Readonly<Record<string, string>>;
  readonly credential: Credential;
  /** Whether the caller ends its side, stays, or goes away in the middle. */
  readonly ending: "end" | "hold" | "cut";
  /** How an answer is read. */
  readonly reading: "all" | "slow" | "cut";
  readonly subject: Subject;
}

const CREDENTIALS = [...Array<Credential>(16).fill("home"), "sandbox", "sandbox", "forged", "none"] as const;

export function makeInput(method: DescMethod, index: number, { seed, world }: { seed: number; world: World }): Input {
  const name = `${nameOf(method)}#${index}`;
  const chance = new Chance(seed, name);
  const aim = takeAim(method, chance, world);
  const form = makeForm(method, chance);
  const trees = makeTrees(method, aim);
  const messages = trees.map((tree) => encode(tree, form, chance));
  return {
    method,
    name,
    form,
    trees,
    pieces: frame(messages, { method, form, chance }),
    headers: makeHeaders(form, method, aim),
    credential: chance.among<Credential>(CREDENTIALS, "home"),
    ending: chance.happens(0.93) ? "end" : chance.of(["hold", "cut"]),
    reading: chance.of(["all", "all", "slow", "cut"]),
    subject: aim.subject,
  };
}

function makeForm(method: DescMethod, chance: Chance): Form {
  const isGet = method.idempotency === Idempotency.NO_SIDE_EFFECTS && chance.happens(0.1);
  const protocol = isGet ? "get" : chance.of(["connect", "connect", "grpc"] as const);
  return {
    protocol,
    http: protocol === "grpc" || chance.happens(0.5) ? 2 : 1,
    codec: chance.of(["json", "proto"]),
    broken: chance.happens(0.25),
  };
}

/** One message, or a header with what follows it. */
function makeTrees({ methodKind, input }: DescMethod, aim: Aim): readonly Tree[] {
  if (methodKind !== "client_streaming") return [makeTree(input, aim)];
  const { chance, hostility } = aim;
  const only = (name: string): Tree => ({
    desc: input,
    branches: input.fields.filter((field) => field.name === name).map((field) => makeBranch(field, aim)),
  });
  const follows = (): Tree => (chance.happens(hostility) ? makeTree(input, aim) : only("data"));
  const first = chance.happens(hostility / 2) ? makeTree(input, aim) : only("header");
  return [first, ...Array.from({ length: chance.below(4) }, follows)];
}

export function encode(tree: Tree, { codec, broken }: Form, chance: Chance): Uint8Array {
  const breaking = broken ? chance : undefined;
  return codec === "json" ? toJsonForm(tree, breaking) : toBinaryForm(tree, breaking);
}

/** What a failing test prints: enough to send the same again by hand. */
export function describeInput({ name, form, headers, credential, ending, reading, pieces }: Input): string {
  const bytes = Buffer.concat(pieces);
  const shown = bytes.subarray(0, 4096);
  const text = form.codec === "json" ? JSON.stringify(shown.toString("latin1")) : shown.toString("hex");
  const how = { ...form, headers, credential, ending, reading, bytes: bytes.length };
  return `${name} ${JSON.stringify(how)}\n${text}`;
}
