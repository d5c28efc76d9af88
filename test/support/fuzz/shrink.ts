import { readAnswer } from "./answer.ts";
import { Chance } from "./chance.ts";
import { frame } from "./frame.ts";
import { encode, type Input } from "./input.ts";
import { onlyBranch } from "./tree.ts";
import { faultOf } from "./verdict.ts";
import type { Wire } from "./wire.ts";

/** Sends each field of a failing input alone, and each but the first beside it, and says which of them fail too. */
export async function shrink(input: Input, wire: Wire): Promise<string> {
  const [tree] = input.trees;
  if (tree === undefined || input.trees.length !== 1) return "not shrunk: a stream of several messages";
  const form = { ...input.form, broken: false };
  const chance = new Chance(0, input.name);
  const failing: string[] = [];
  const candidates = [
    { name: "all fields, well-formed", tree },
    ...tree.branches.map((branch, index) => ({ name: `only ${branch.field.name}`, tree: onlyBranch(tree, index) })),
    ...tree.branches.map((branch, index) => ({
      name: `without ${branch.field.name}`,
      tree: { ...tree, branches: tree.branches.toSpliced(index, 1) },
    })),
  ];
  for (const candidate of candidates) {
    const pieces = frame([encode(candidate.tree, form, chance)], { method: input.method, form, chance });
    const again: Input = { ...input, form, pieces, ending: "end", reading: "all" };
    if (faultOf(readAnswer(again, await wire.send(again))) !== undefined) failing.push(candidate.name);
  }
  return failing.length === 0 ? "shrunk: fails in this form only" : `shrunk: fails with ${failing.join("; ")}`;
}
