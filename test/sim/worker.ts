import { parentPort } from "node:worker_threads";
import { simulate } from "./simulate.ts";

/** Runs one seed after another, as it is told them. */
parentPort?.on("message", (seed: number) => {
  void simulate(seed).then((outcome) => parentPort?.postMessage(outcome));
});
