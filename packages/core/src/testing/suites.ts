/** Contract suites for adapters in other packages. They need jest, so they stand apart from what else serves tests. */
export { childProcessSuite, shellPrograms } from "./child-process-suite.ts";
export { commandRunnerSuite } from "./command-runner-suite.ts";
