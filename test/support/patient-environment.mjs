import { createRequire } from "node:module";

/** jest's own environment is a dependency of a dependency of jest; nothing but this chain names it. */
const requireOfJest = ["jest", "jest-cli", "jest-config"].reduce(
  (from, name) => createRequire(from.resolve(name)),
  createRequire(import.meta.url),
);
const { TestEnvironment } = requireOfJest("jest-environment-node");

const factor = Number(process.env.TURNBOX_TEST_TIMEOUT_FACTOR ?? "1");

const timedOf = (event) => {
  if (event.name === "test_start") return event.test;
  return event.name === "hook_start" ? event.hook : undefined;
};

/**
 * The environment of tests on a slow machine: every timeout of a test or a hook is `factor` times as long, and each test
 * is told as it ends, because jest itself tells nothing before the whole file has ended.
 */
export default class PatientEnvironment extends TestEnvironment {
  /** A hook of several tests is started several times. */
  #seen = new WeakSet();

  async handleTestEvent(event, state) {
    if (event.name === "run_start") state.testTimeout *= factor;
    if (event.name === "test_done") {
      const verdict = event.test.errors.length === 0 ? "passed" : "FAILED";
      process.stdout.write(`${verdict}: ${event.test.name} (${event.test.duration} ms)\n`);
    }
    const timed = timedOf(event);
    if (timed?.timeout === undefined || this.#seen.has(timed)) return;
    this.#seen.add(timed);
    timed.timeout *= factor;
  }
}
