// An agent loop: each step of the model is sealed as a turn, and a step that breaks the test is rolled back.
import { type AnthropicTool, Turnbox } from "@turnbox/client";

interface ToolUse {
  readonly id: string;
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}
interface ToolResult {
  readonly tool_use_id: string;
  readonly content: string;
  readonly is_error: boolean;
}

const edit = (new_string: string) => ({ path: "greet.sh", old_string: "$1", new_string });
const SCRIPT: readonly (readonly ToolUse[])[] = [
  [{ id: "call-1", name: "write_file", input: { path: "greet.sh", content: 'echo "hello $1"\n' } }],
  [{ id: "call-2", name: "edit_file", input: edit("stranger") }],
  [{ id: "call-3", name: "edit_file", input: edit("${1:-stranger}") }],
];

/** Stands for the request to a model. It is given what a real one is given; what it wants is in the script. */
function askModel(step: number, tools: readonly AnthropicTool[], results: readonly ToolResult[]): readonly ToolUse[] {
  if (step === 0) console.log(`model: I have ${tools.length} tools`);
  for (const { content } of results) console.log(`model: I am told "${content}"`);
  return SCRIPT[step] ?? [];
}

using turnbox = Turnbox.connect();
await using sandbox = await turnbox.create();
await sandbox.files.write("test.sh", 'test "$(sh greet.sh Ada)" = "hello Ada"\n');
let good = await sandbox.turn();

const tools = (await sandbox.tools()).anthropic();
let results: readonly ToolResult[] = [];
for (let step = 0; ; step++) {
  const calls = askModel(step, tools, results);
  if (calls.length === 0) break;
  const answers: ToolResult[] = [];
  for (const { id, name, input } of calls) {
    const { content, isError } = await sandbox.tool(name, input, { toolCallId: id });
    answers.push({ tool_use_id: id, content, is_error: isError });
  }
  results = answers;

  const { ok } = await sandbox.bash("sh test.sh");
  const turn = await sandbox.turn({ outcome: ok ? "succeeded" : "failed" });
  if (!ok) await sandbox.rollback(good.number);
  console.log(`turn ${turn.number} ${ok ? "passes" : `fails, back to turn ${good.number}`}`);
  if (ok) good = turn;
}

// A failed turn is not lost: one can go there, look, and take that back.
await sandbox.rollback(3);
console.log(`turn 3 had: ${(await sandbox.files.readText("greet.sh")).trim()}`);
await sandbox.undo();
console.log(`now it is: ${(await sandbox.files.readText("greet.sh")).trim()}`);
