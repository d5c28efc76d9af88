/** What a model is told of the server before it calls anything. */
export const INSTRUCTIONS = [
  "These tools work in a Turnbox sandbox: an isolated Linux machine with files of its own. Nothing done there touches the",
  "user's machine. Relative paths begin in /workspace. Files and background processes stay between calls; the state of a shell",
  "(cd, variables) does not.",
  "Every turn is a snapshot of all files: call `turn` when a step is done and before anything risky. `turns` lists them,",
  "`diff` shows what changed since one. `rollback` brings all files back to a turn and stops running processes; nothing is",
  "lost by it, because `undo` takes the last rollback back.",
  "To try several ways at once, call `fork`: it makes copies of the sandbox, from now or from a turn. `use_sandbox` says in",
  "which of them the following calls work, and `discard_fork` removes one that is no longer needed.",
].join(" ");
