import { Command } from "commander";
import type { Invocation } from "./invocation.ts";
import { registerAttach } from "./verb/attach.ts";
import { registerCat } from "./verb/cat.ts";
import { registerConnect } from "./verb/connect.ts";
import { registerCp } from "./verb/cp.ts";
import { registerCreate } from "./verb/create.ts";
import { registerDiff } from "./verb/diff.ts";
import { registerDoctor } from "./verb/doctor.ts";
import { registerDown } from "./verb/down.ts";
import { registerExec } from "./verb/exec.ts";
import { registerExtend } from "./verb/extend.ts";
import { registerFleet } from "./verb/fleet.ts";
import { registerFork } from "./verb/fork.ts";
import { registerKill } from "./verb/kill.ts";
import { registerLog } from "./verb/log.ts";
import { registerLogs } from "./verb/logs.ts";
import { registerLs } from "./verb/ls.ts";
import { registerNet } from "./verb/net.ts";
import { registerPause, registerResume } from "./verb/pause.ts";
import { registerPort } from "./verb/port.ts";
import { registerPs } from "./verb/ps.ts";
import { registerRepair } from "./verb/repair.ts";
import { registerReset } from "./verb/reset.ts";
import { registerRm } from "./verb/rm.ts";
import { registerRollback } from "./verb/rollback.ts";
import { registerRun } from "./verb/run.ts";
import { registerShell } from "./verb/shell.ts";
import { registerSnapshot } from "./verb/snapshot.ts";
import { registerStats } from "./verb/stats.ts";
import { registerTemplate } from "./verb/template.ts";
import { registerTool } from "./verb/tool.ts";
import { registerTools } from "./verb/tools.ts";
import { registerTurn } from "./verb/turn.ts";
import { registerUndo } from "./verb/undo.ts";
import { registerUp } from "./verb/up.ts";
import { registerWrite } from "./verb/write.ts";

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
  registerShell,
  registerRun,
  registerPs,
  registerLogs,
  registerAttach,
  registerKill,
  registerTools,
  registerTool,
  registerCp,
  registerCat,
  registerWrite,
  registerNet,
  registerPort,
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
  registerFleet,
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
        "Exit codes: 0 done, 1 failed, 2 usage, 3 no server, 4 not found; exec, run, shell and attach pass the command's,\n" +
        "and have 125 for failures of their own.",
    );
  for (const register of VERBS) register(program, invocation);
  return program;
}
