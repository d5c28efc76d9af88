import { describe, expect, it } from "@jest/globals";
import { drawTurnTree, TREE_SHAPES, type TreeNode } from "./turn-tree.ts";

let createdAtMs = 0;
const node = (id: string, parentId?: string): TreeNode => ({
  id,
  label: id,
  createdAtMs: createdAtMs++,
  ...(parentId === undefined ? {} : { parentId }),
});

const drawn = (...lines: string[]): string => lines.map((line) => `${line}\n`).join("");

describe("drawTurnTree", () => {
  it("draws nothing for no snapshots", () => {
    expect(drawTurnTree([], undefined)).toBe("");
  });

  it("keeps a straight line of turns in one column", () => {
    expect(drawTurnTree([node("a"), node("b", "a"), node("c", "b")], "c")).toBe(drawn("*  a", "*  b", "*  c"));
  });

  it("puts what a rollback left behind on a branch, above the line that leads to the head", () => {
    const nodes = [node("a"), node("b", "a"), node("c", "b"), node("undo", "c"), node("d", "a"), node("e", "d")];
    expect(drawTurnTree(nodes, "e")).toBe(drawn("*    a", "|-*  b", "| *  c", "| *  undo", "*    d", "*    e"));
  });

  it("follows the head and not the age when an undo goes back to the older branch", () => {
    const nodes = [node("a"), node("b", "a"), node("c", "a"), node("d", "c")];
    expect(drawTurnTree(nodes, "b")).toBe(drawn("*    a", "|-*  c", "| *  d", "*    b"));
  });

  it("keeps the order of the list among snapshots of the same time", () => {
    const nodes = ["z", "y", "x"].map((id) => ({ id, parentId: "a", label: id, createdAtMs: 7 }));
    expect(drawTurnTree([{ id: "a", label: "a", createdAtMs: 7 }, ...nodes], undefined)).toBe(
      drawn("*    a", "|-*  z", "|-*  y", "*    x"),
    );
  });

  it("draws lines and marks the head where more than ASCII can be shown", () => {
    const nodes = [node("a"), node("b", "a"), node("c", "b"), node("d", "a")];
    expect(drawTurnTree(nodes, "d", TREE_SHAPES["utf-8"])).toBe(drawn("○    a", "├─○  b", "│ ○  c", "●    d"));
  });

  it("nests branches of branches", () => {
    const nodes = [node("a"), node("b", "a"), node("c", "b"), node("d", "b"), node("e", "a"), node("f", "a")];
    expect(drawTurnTree(nodes, "f")).toBe(
      drawn("*      a", "|-*    b", "| |-*  c", "| *    d", "|-*    e", "*      f"),
    );
  });

  it("begins a line of its own if retention took the parent, with that of the head last", () => {
    const nodes = [node("c", "gone"), node("d", "c"), node("x", "also-gone")];
    expect(drawTurnTree(nodes, "d")).toBe(drawn("*  x", "*  c", "*  d"));
  });

  it("stands ten thousand turns in a row", () => {
    const nodes = Array.from({ length: 10_000 }, (_, index) => node(`t${String(index)}`, `t${String(index - 1)}`));
    expect(drawTurnTree(nodes, "t9999").split("\n")).toHaveLength(10_001);
  });
});
