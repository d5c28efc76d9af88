import type { DescField, DescMessage, JsonObject } from "@bufbuild/protobuf";

export type Leaf = string | number | bigint | boolean | Uint8Array;

/** A message before it has a form: fields in any order, also several times, with values of any range. */
export interface Tree {
  readonly desc: DescMessage;
  readonly branches: readonly Branch[];
}

/** A field with its values: one, or those of a list or map. */
export interface Branch {
  readonly field: DescField;
  readonly items: readonly Item[];
}

export interface Item {
  /** The key in a map. */
  readonly key?: Leaf;
  readonly value: Value;
}

export type Value =
  | { readonly kind: "leaf"; readonly leaf: Leaf }
  | { readonly kind: "message"; readonly tree: Tree }
  | { readonly kind: "struct"; readonly json: JsonObject };

/** The same tree with one branch only; for shrinking. */
export function onlyBranch(tree: Tree, index: number): Tree {
  return { ...tree, branches: tree.branches.slice(index, index + 1) };
}
