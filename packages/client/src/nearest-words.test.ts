import { describe, expect, it } from "@jest/globals";
import { nearestWords } from "./nearest-words.ts";

describe("nearestWords", () => {
  it.each([
    ["crate", ["create", "cat", "rm"], ["create"]],
    ["wbe", ["wbes", "web"], ["wbes", "web"]],
    ["fokr", ["fork"], ["fork"]],
    ["web1", ["web2", "web3", "web4", "web5"], ["web2", "web3", "web4"]],
    ["web", ["web"], []],
    ["a", ["b"], []],
    ["something", ["else"], []],
    ["", ["x"], []],
  ])("finds for %j among %j: %j", (word, candidates, near) => {
    expect(nearestWords(word, candidates)).toEqual(near);
  });
});
