import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { instancesReady } from "../control-calls.ts";
import { processesWith } from "../process.ts";
import { SEED } from "../random.ts";
import { startServer, type TestServer } from "../server.ts";
import { ControlKeeper } from "./control-keeper.ts";
import { controlState } from "./control-state.ts";
import { type Collectable, collectable, collectGarbage } from "./collect-garbage.ts";
import { fuzz, type FuzzResult } from "./fuzz.ts";
import { CONTROL_METHODS, wantedOf } from "./methods.ts";
import { expectSound, report } from "./outcome.ts";
import { replayRefused } from "./replay-refused.ts";
import { callsEnd, HealthWatch, memoryReturns, residentMib } from "./watch-service.ts";

const LANES = 12;
const START_MS = 240_000;
/** What a service may keep of a run: caches, and code that was not used before. */
const SLACK_MIB = 100;

/** Sends so many inputs to each method of an orchestrator with two local hosts, one of which is drained again and again. */
export function fuzzControl({ inputs, limitMs }: { readonly inputs: number; readonly limitMs: number }): void {
  describe(`${inputs} inputs to each method of an orchestrator, made from the protos (seed ${SEED})`, () => {
    const methods = wantedOf(CONTROL_METHODS);
    let server: TestServer;
    let keeper: ControlKeeper;
    let pids: { readonly orchestrator: number; readonly host: number };
    let beforeMib: number;
    let garbage: Collectable;
    let result: FuzzResult;
    beforeAll(async () => {
      garbage = await collectable();
      server = await startServer({ env: { ...garbage.env, TURNBOX_HOSTS: "2", TURNBOX_NO_APT: "1" } });
      await instancesReady(server, 2, START_MS);
      keeper = new ControlKeeper(server);
      await keeper.mend();
      pids = pidsOf(server);
      beforeMib = residentMib(pids.orchestrator);
    }, START_MS);
    afterAll(async () => {
      await server[Symbol.asyncDispose]();
    }, START_MS);

    it(
      "are each answered with a result or a typed refusal, within 30 s, and health answers meanwhile",
      async () => {
        const health = new HealthWatch(server.url);
        const begunMs = performance.now();
        result = await fuzz({ service: keeper.service, keeper, methods, inputsPerMethod: inputs, lanes: LANES });
        await health.end();
        const seconds = (performance.now() - begunMs) / 1000;
        report("orchestrator", { seconds, slowestMs: result.slowestMs, slowestHealthMs: health.slowestMs }, result);
        expectSound(result, { methods, inputs, healthMs: health.slowestMs });
      },
      limitMs,
    );

    it(
      "change nothing if they are refused",
      async () => {
        const { refused, changes } = await replayRefused(result.refused, {
          service: keeper.service,
          state: () => controlState(server),
          rest: () => keeper.rest(),
        });
        report("orchestrator, refused again", { calls: refused }, result);
        expect(changes).toEqual([]);
        expect(refused).toBeGreaterThan(inputs);
      },
      limitMs,
    );

    it(
      "leave no call behind and no memory taken, in the processes that were there at first",
      async () => {
        await callsEnd(server);
        await collectGarbage(pids.orchestrator, garbage);
        const afterMib = await memoryReturns(pids.orchestrator, beforeMib, SLACK_MIB);
        report("orchestrator, memory", { beforeMib, afterMib }, result);
        expect(pidsOf(server)).toEqual(pids);
      },
      limitMs,
    );
  });
}

/** Of the orchestrator, and of the host that no input drains. */
function pidsOf({ home }: TestServer): { readonly orchestrator: number; readonly host: number } {
  const pidOf = (program: string, place: string): number => {
    const line = processesWith(place).find((one) => one.includes(program));
    if (line === undefined) throw new Error(`there is no ${program}`);
    return Number(line.split(" ")[0]);
  };
  return {
    orchestrator: pidOf("turnbox-orchestrator.mjs", home),
    host: pidOf("turnbox-sandbox-host.mjs", `${home}/hosts/local-1`),
  };
}
