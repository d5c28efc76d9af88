import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { startHost, type TestHost } from "../host.ts";
import { SEED } from "../random.ts";
import { type Collectable, collectable, collectGarbage } from "./collect-garbage.ts";
import { fuzz, type FuzzResult } from "./fuzz.ts";
import { HostKeeper } from "./host-keeper.ts";
import { hostState } from "./host-state.ts";
import { HOST_METHODS, wantedOf } from "./methods.ts";
import { expectSound, report } from "./outcome.ts";
import { replayRefused } from "./replay-refused.ts";
import { callsEnd, HealthWatch, memoryReturns, residentMib } from "./watch-service.ts";

const LANES = 12;
const START_MS = 180_000;
/** What a service may keep of a run: caches, and code that was not used before. */
const SLACK_MIB = 100;

/** Sends so many inputs to each method of a whole host (ZFS, gVisor), and looks at what it is like then. */
export function fuzzHost({ inputs, limitMs }: { readonly inputs: number; readonly limitMs: number }): void {
  describe(`${inputs} inputs to each method of a host, made from the protos (seed ${SEED})`, () => {
    const methods = wantedOf(HOST_METHODS);
    let host: TestHost;
    let keeper: HostKeeper;
    let pid: number;
    let beforeMib: number;
    let garbage: Collectable;
    let result: FuzzResult;
    beforeAll(async () => {
      garbage = await collectable();
      host = await startHost({ env: garbage.env });
      ({ pid } = host);
      keeper = new HostKeeper(host);
      await keeper.mend();
      beforeMib = residentMib(pid);
    }, START_MS);
    afterAll(async () => {
      await host[Symbol.asyncDispose]();
    }, START_MS);

    it(
      "are each answered with a result or a typed refusal, within 30 s, and health answers meanwhile",
      async () => {
        const health = new HealthWatch(host.url);
        const begunMs = performance.now();
        result = await fuzz({ service: keeper.service, keeper, methods, inputsPerMethod: inputs, lanes: LANES });
        await health.end();
        const seconds = (performance.now() - begunMs) / 1000;
        report("host", { seconds, slowestMs: result.slowestMs, slowestHealthMs: health.slowestMs }, result);
        expectSound(result, { methods, inputs, healthMs: health.slowestMs });
      },
      limitMs,
    );

    it(
      "change nothing if they are refused",
      async () => {
        const { refused, changes } = await replayRefused(result.refused, {
          service: keeper.service,
          state: () => hostState(host),
          rest: () => keeper.rest(),
        });
        report("host, refused again", { calls: refused }, result);
        expect(changes).toEqual([]);
        expect(refused).toBeGreaterThan(inputs);
      },
      limitMs,
    );

    it(
      "leave no call behind and no memory taken, in the process that was there at first",
      async () => {
        await callsEnd({ url: host.url, token: keeper.service.tokens.home });
        await collectGarbage(pid, garbage);
        const afterMib = await memoryReturns(pid, beforeMib, SLACK_MIB);
        report("host, memory", { beforeMib, afterMib }, result);
        expect(host.pid).toBe(pid);
        expect((await host.call("HostService/HealthCheck"))["status"]).toBe("HEALTH_STATUS_HEALTHY");
      },
      limitMs,
    );
  });
}
