import { Command } from "commander";
import type { Invocation } from "./invocation.ts";
import { registerConnect } from "./verb/connect.ts";
import { registerCreate } from "./verb/create.ts";
import { registerDiff } from "./verb/diff.ts";
import { registerDoctor } from "./verb/doctor.ts";
import { registerDown } from "./verb/down.ts";
import { registerExec } from "./verb/exec.ts";
import { registerExtend } from "./verb/extend.ts";
import { registerFork } from "./verb/fork.ts";
import { registerLog } from "./verb/log.ts";
import { registerLs } from "./verb/ls.ts";
import { registerPause, registerResume } from "./verb/pause.ts";
import { registerRepair } from "./verb/repair.ts";
import { registerReset } from "./verb/reset.ts";
import { registerRm } from "./verb/rm.ts";
import { registerRollback } from "./verb/rollback.ts";
import { registerSnapshot } from "./verb/snapshot.ts";
import { registerStats } from "./verb/stats.ts";
import { registerTemplate } from "./verb/template.ts";
import { registerTurn } from "./verb/turn.ts";
import { registerUndo } from "./verb/undo.ts";
import { registerUp } from "./verb/up.ts";

/** The verbs, in the order of `--help`. */
const VERBS = [
  registerUp,
  registerDown,
  registerReset,
  registerDoctor,
  registerCreate,
  registerLs,
  registerConnect,
  registerExec,
  registerTurn,
  registerSnapshot,
  registerLog,
  registerDiff,
  registerRollback,
  registerUndo,
  registerFork,
  registerPause,
  registerResume,
  registerExtend,
  registerStats,
  registerRepair,
  registerRm,
  registerTemplate,
];

/** The whole command line. Parsing throws `CommanderError` instead of ending the process, and reports nothing itself. */
export function createProgram(invocation: Invocation): Command {
  const { version, stdout } = invocation.surroundings;
  const program = new Command("turnbox")
    .description("Sandboxes for AI agents in which every turn is a snapshot.")
    .version(version, "-V, --version", "print the version")
    .helpOption("-h, --help", "print help, with examples for each verb")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => stdout.write(text, () => undefined),
      // Usage errors are reported by whoever parses, in the wanted format.
      writeErr: () => undefined,
    })
    .addHelpText(
      "after",
      "\nID is a sandbox's full id, a unique prefix of its session part, or its name.\n" +
        "Exit codes: 0 done, 1 failed, 2 usage, 3 no server, 4 not found; exec passes the command's, 125 for its own failures.",
    );
  for (const register of VERBS) register(program, invocation);
  return program;
}
