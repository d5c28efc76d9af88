import { describe, expect, it } from "@jest/globals";
import { splitCommand } from "./split-command.ts";

describe("an agent's command line", () => {
  it.each<[string, readonly string[]]>([
    ["agent", ["agent"]],
    ["  npx  -y agent \n--acp ", ["npx", "-y", "agent", "--acp"]],
    [`sh -c 'echo "a  b"; exit 1'`, ["sh", "-c", 'echo "a  b"; exit 1']],
    [`a "b \\"c\\" \\n $HOME" d`, ["a", 'b "c" \\n $HOME', "d"]],
    [`a'b'"c"d\\ e`, ["abcd e"]],
    [`a '' ""`, ["a", "", ""]],
    ["a $(b) *.ts | c", ["a", "$(b)", "*.ts", "|", "c"]],
  ])("%s has the words %j", (line, words) => {
    expect(splitCommand(line)).toEqual(words);
  });

  it.each(["", "   ", "''", "a 'b", 'a "b', "a \\", "a\0b"])("refuses %j", (line) => {
    expect(() => splitCommand(line)).toThrow(/agentCommand/);
  });
});
