import { Command } from "commander";
import { withHelpLook } from "./help/help-look.ts";
import type { Invocation } from "./invocation.ts";
import { registerAttach } from "./verb/attach.ts";
import { registerCat } from "./verb/cat.ts";
import { registerComplete, registerCompletion } from "./verb/completion.ts";
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
import { registerHelp } from "./verb/help.ts";
import { registerKill } from "./verb/kill.ts";
import { registerLog } from "./verb/log.ts";
import { registerLogs } from "./verb/logs.ts";
import { registerLs } from "./verb/ls.ts";
import { registerMcp } from "./verb/mcp.ts";
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

type Register = (program: Command, invocation: Invocation) => void;

/** The verbs by topic, in the order of `--help`. */
const VERBS: Readonly<Record<string, readonly Register[]>> = {
  "Server:": [registerUp, registerDown, registerReset, registerDoctor],
  "Sandboxes:": [
    registerCreate,
    registerLs,
    registerConnect,
    registerPause,
    registerResume,
    registerExtend,
    registerStats,
    registerRepair,
    registerRm,
  ],
  "Commands and processes:": [
    registerExec,
    registerShell,
    registerRun,
    registerPs,
    registerLogs,
    registerAttach,
    registerKill,
  ],
  "Turns:": [registerTurn, registerSnapshot, registerLog, registerDiff, registerRollback, registerUndo, registerFork],
  "Files:": [registerCp, registerCat, registerWrite],
  "Tools for agents:": [registerTools, registerTool, registerMcp],
  "Network:": [registerNet, registerPort],
  "Templates and machines:": [registerTemplate, registerFleet],
  "Help:": [registerHelp, registerCompletion, registerComplete],
};

/** The whole command line. Parsing throws `CommanderError` instead of ending the process, and reports nothing itself. */
export function createProgram(invocation: Invocation): Command {
  const { version } = invocation.surroundings;
  const program = withHelpLook(new Command("turnbox"), invocation.surroundings)
    .usage("[options] <verb>")
    .description("Sandboxes for AI agents in which every turn is a snapshot.")
    .version(version, "-V, --version", "print the version")
    .helpOption("-h, --help", "print help, with examples for each verb")
    .exitOverride()
    .addHelpText(
      "after",
      "\nID is a sandbox's full id, a unique prefix of its session part, or its name.\n" +
        "`turnbox VERB --help` has examples; `turnbox help exit-codes` and `turnbox help\n" +
        "environment` say what the exit codes mean and which variables are read.",
    );
  for (const [topic, verbs] of Object.entries(VERBS)) {
    program.commandsGroup(topic);
    for (const register of verbs) register(program, invocation);
  }
  return program;
}
