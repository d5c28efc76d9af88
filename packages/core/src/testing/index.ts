export { createManualClock, type ManualClock } from "./manual-clock.ts";
export { type MotoServer, startMoto } from "./peer/moto-server.ts";
export { providePythonTools, type PythonTools } from "./peer/python-tools.ts";
export { provideVersityGateway, startVersityGateway, type VersityGateway } from "./peer/versity-gateway.ts";
export {
  createScriptedCommandRunner,
  type ScriptedAnswer,
  type ScriptedCommandRunner,
} from "./scripted-command-runner.ts";
export { createTestAccess, type TestAccess } from "./test-access.ts";
