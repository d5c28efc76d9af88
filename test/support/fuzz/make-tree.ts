import { type DescEnum, type DescField, type DescMessage, type DescOneof, ScalarType } from "@bufbuild/protobuf";
import type { Aim } from "./aim.ts";
import { hostileEnum, hostileLeaf, hostileObject } from "./hostile.ts";
import { soundLeaf, soundName, soundText } from "./sound.ts";
import { toolParameters } from "./tool-parameters.ts";
import type { Branch, Item, Leaf, Tree, Value } from "./tree.ts";

const STRUCT = "google.protobuf.Struct";
const MANY = 300;

/** Fields without which a call does not get far. */
const CORE =
  /^(?!expected_)(.*_id|path|source|destination|binary|tool_name|params|call|header|data|port|size|columns|rows|name|admission|policy|ttl|seconds)$/;

/** A message of the type, filled by the aim: mostly what fits, here and there what does not. */
export function makeTree(desc: DescMessage, aim: Aim): Tree {
  const { chance, hostility } = aim;
  const branches = desc.members.flatMap((member) => {
    if (member.kind === "oneof") return makeOneof(member, aim);
    const likely = CORE.test(member.name) ? 0.97 : 0.3;
    return chance.happens(hostility > 0.5 ? 0.6 : likely) ? [makeBranch(member, aim)] : [];
  });
  const twice = branches[0];
  return { desc, branches: twice !== undefined && isHostile(aim) ? [...branches, twice] : branches };
}

const isHostile = ({ chance, hostility }: Aim): boolean => chance.happens(hostility);

/** One member, all of them, or none. */
function makeOneof({ fields }: DescOneof, aim: Aim): readonly Branch[] {
  if (isHostile(aim)) return aim.chance.happens(0.5) ? [] : fields.map((field) => makeBranch(field, aim));
  const chosen = fields[aim.chance.below(fields.length)];
  return chosen === undefined ? [] : [makeBranch(chosen, aim)];
}

export function makeBranch(field: DescField, aim: Aim): Branch {
  const isMany = field.fieldKind === "list" || field.fieldKind === "map";
  if (!isMany) return { field, items: [{ value: makeValue(field, aim) }] };
  const count = isHostile(aim) && aim.chance.happens(0.2) ? MANY : aim.chance.below(3);
  return { field, items: Array.from({ length: count }, (_, index) => makeItem(field, aim, index)) };
}

function makeItem(field: DescField, aim: Aim, index: number): Item {
  if (field.fieldKind !== "map") return { value: makeValue(field, aim) };
  const key = isHostile(aim) ? hostileLeaf(field.mapKey, aim.chance) : `${soundName(aim)}${index}`;
  return { key, value: makeValue(field, aim) };
}

function makeValue(field: DescField, aim: Aim): Value {
  if ("message" in field && field.message !== undefined) {
    if (field.message.typeName !== STRUCT) return { kind: "message", tree: makeTree(field.message, aim) };
    return { kind: "struct", json: isHostile(aim) ? hostileObject(aim.chance) : toolParameters(aim) };
  }
  if ("enum" in field && field.enum !== undefined) return leaf(makeEnum(field.enum, aim));
  const scalar = field.scalar;
  if (isHostile(aim)) return leaf(hostileLeaf(scalar, aim.chance));
  return leaf(soundLeaf(field, aim) ?? anyLeaf(scalar, aim));
}

const leaf = (value: Leaf): Value => ({ kind: "leaf", leaf: value });

function makeEnum(desc: DescEnum, aim: Aim): bigint {
  if (isHostile(aim)) return hostileEnum(desc, aim.chance);
  return BigInt(desc.values[aim.chance.below(desc.values.length)]?.number ?? 0);
}

function anyLeaf(scalar: ScalarType, aim: Aim): Leaf {
  if (scalar === ScalarType.STRING) return soundText(aim);
  if (scalar === ScalarType.BOOL) return aim.chance.happens(0.5);
  if (scalar === ScalarType.BYTES) return aim.chance.bytes(aim.chance.below(100));
  return scalar === ScalarType.DOUBLE ? 1 : BigInt(aim.chance.below(3));
}
