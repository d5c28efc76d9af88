import { createChildCommandRunner } from "./child-command-runner.ts";
import { childProcessSuite, shellPrograms } from "../testing/child-process-suite.ts";
import { commandRunnerSuite } from "../testing/command-runner-suite.ts";

commandRunnerSuite("child process", () => ({
  runner: createChildCommandRunner(),
  programs: shellPrograms("sockets"),
}));

childProcessSuite("this process", createChildCommandRunner());
