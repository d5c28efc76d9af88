import type { DescField } from "@bufbuild/protobuf";
import type { Chance } from "./chance.ts";
import type { Branch, Item, Leaf, Tree, Value } from "./tree.ts";

const DURATION = "google.protobuf.Duration";
const TIMESTAMP = "google.protobuf.Timestamp";

/** The JSON form as text. With `chance` it is broken at some places: types, keys, the text itself. */
export function toJsonForm(tree: Tree, chance?: Chance): Uint8Array {
  const text = messageText(tree, chance);
  return Buffer.from(chance === undefined ? text : breakText(text, chance));
}

function messageText(tree: Tree, chance?: Chance): string {
  const special = wellKnownText(tree);
  if (special !== undefined) return special;
  const members = mergedBranches(tree).flatMap((branch) => {
    const member = `${JSON.stringify(nameOf(branch.field, chance))}:${branchText(branch, chance)}`;
    return chance?.happens(0.05) === true ? [member, member] : [member];
  });
  if (chance?.happens(0.1) === true)
    members.push(`${JSON.stringify(chance.of(["nope", "__proto__", ""]))}:${wrong(chance)}`);
  return `{${members.join(",")}}`;
}

/** JSON has each field once; a tree may have it twice. */
function mergedBranches({ branches }: Tree): readonly Branch[] {
  return [...new Map(branches.map((branch) => [branch.field.number, branch])).values()];
}

const nameOf = ({ jsonName, name }: DescField, chance?: Chance): string =>
  chance?.happens(0.1) === true ? name : jsonName;

function branchText({ field, items }: Branch, chance?: Chance): string {
  if (chance?.happens(0.06) === true) return wrong(chance);
  if (field.fieldKind === "list") return `[${items.map(({ value }) => valueText(value, chance)).join(",")}]`;
  if (field.fieldKind === "map") return `{${items.map((item) => entryText(item, chance)).join(",")}}`;
  const last = items.at(-1);
  return last === undefined ? "null" : valueText(last.value, chance);
}

const entryText = ({ key = "", value }: Item, chance?: Chance): string =>
  `${JSON.stringify(String(key))}:${valueText(value, chance)}`;

function valueText(value: Value, chance?: Chance): string {
  if (chance?.happens(0.03) === true) return wrong(chance);
  if (value.kind === "message") return messageText(value.tree, chance);
  return value.kind === "struct" ? JSON.stringify(value.json) : leafText(value.leaf, chance);
}

/** Lone surrogates are escaped, so the text itself is UTF-8. */
function leafText(leaf: Leaf, chance?: Chance): string {
  if (leaf instanceof Uint8Array) return JSON.stringify(Buffer.from(leaf).toString("base64"));
  if (typeof leaf === "bigint") return chance?.happens(0.3) === true ? String(leaf) : JSON.stringify(String(leaf));
  if (typeof leaf === "number" && !Number.isFinite(leaf)) return JSON.stringify(String(leaf));
  return JSON.stringify(leaf);
}

/** Durations and times are strings in JSON. */
function wellKnownText({ desc, branches }: Tree): string | undefined {
  if (desc.typeName !== DURATION && desc.typeName !== TIMESTAMP) return undefined;
  const number = (name: string): string => {
    const value = branches.find(({ field }) => field.name === name)?.items[0]?.value;
    return value?.kind === "leaf" ? String(value.leaf) : "0";
  };
  if (desc.typeName === TIMESTAMP) return JSON.stringify(`1970-01-01T00:00:${number("seconds")}Z`);
  const nanos = number("nanos");
  return JSON.stringify(`${number("seconds")}${nanos === "0" ? "" : `.${nanos.padStart(9, "0")}`}s`);
}

/** Legal JSON that is of the wrong type nearly everywhere. */
function wrong(chance: Chance): string {
  const deep = chance.of([20, 200, 5000]);
  return chance.of([
    "null",
    "true",
    "0.5",
    "-1",
    "1e999",
    "123456789012345678901234567890",
    '""',
    '"x"',
    '"\\ud800"',
    '"\\u0000"',
    "[]",
    "{}",
    "[null]",
    '{"a":{"b":[1]}}',
    '{"__proto__":{"x":1}}',
    `${"[".repeat(deep)}${"]".repeat(deep)}`,
  ]);
}

/** What is no JSON any more, or only just. */
function breakText(text: string, chance: Chance): string {
  switch (chance.below(10)) {
    case 0:
      return text.slice(0, chance.below(text.length + 1));
    case 1:
      return `\ufeff${text}`;
    case 2:
      return `${text}}`;
    case 3:
      return `[${text}]`;
    case 4:
      return text.replace(/"/g, "'");
    case 5:
      return wrong(chance);
    case 6:
      return "";
    default:
      return text;
  }
}
