export { createManualClock, type ManualClock } from "./manual-clock.ts";
export {
  createScriptedCommandRunner,
  type ScriptedAnswer,
  type ScriptedCommandRunner,
} from "./scripted-command-runner.ts";
export { createTestAccess, type TestAccess } from "./test-access.ts";
