import { SandboxError } from "@turnbox/core";
import type { Provisioner, ProvisionerCapabilities } from "../../packages/orchestrator/src/provisioner/provisioner.ts";
import type { CloudModel } from "./cloud-model.ts";
import type { SimProcess } from "./sim-process.ts";
import { send } from "./wire.ts";
import type { SimWorld } from "./world.ts";

export interface CloudLineOptions {
  readonly world: SimWorld;
  readonly process: SimProcess;
  readonly cloud: CloudModel;
  readonly stopStart: ProvisionerCapabilities["stopStart"];
}

const PATIENCE_MS = 30_000;

/** One orchestrator's way to the cloud: it throttles, fails, and does things without saying so. */
export function createCloudLine(options: CloudLineOptions): Provisioner {
  const { world, process, cloud, stopStart } = options;
  const { trace, chance } = world;

  const ask = <T>(signal: AbortSignal, what: string, effect: () => T): Promise<T> =>
    send(world, {
      process,
      signal,
      patienceMs: PATIENCE_MS,
      cut: () => "open",
      serve: () =>
        new Promise<T>((resolve) => {
          if (chance.happens(world.weather.cloudRefusal)) throw refusal(chance.next());
          const answer = effect();
          if (what !== "") trace.add(`cloud: ${process.name} ${what}`);
          if (chance.happens(world.weather.cloudUnknown)) {
            throw new SandboxError("PROVIDER_UNAVAILABLE", "the cloud's answer was lost", { admitted: "unknown" });
          }
          resolve(answer);
        }),
    });

  return {
    kind: "model",
    capabilities: { launch: "supported", stopStart },
    get image() {
      return cloud.image;
    },
    launch: (spec, { signal }) =>
      ask(signal, `launch ${spec.instanceId}`, () => cloud.launch({ ...spec, image: spec.image ?? cloud.image })),
    list: (query, { signal }) => ask(signal, "", () => cloud.list(query)),
    describe: (instanceId, { signal }) => ask(signal, "", () => cloud.describe(instanceId)),
    terminate: (instanceId, { signal }) =>
      ask(signal, `terminate ${instanceId}`, () => {
        cloud.terminate(instanceId, process.name);
      }),
    stop: (instanceId, { signal }) => ask(signal, `stop ${instanceId}`, () => cloud.stop(instanceId, process.name)),
    start: (instanceId, { signal }) => ask(signal, `start ${instanceId}`, () => cloud.start(instanceId)),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

function refusal(kind: number): SandboxError {
  return kind < 0.5
    ? new SandboxError("RATE_LIMITED", "the cloud asks to be asked less often", { retryAfterMs: 2000 })
    : new SandboxError("PROVIDER_UNAVAILABLE", "the cloud has no machine of this kind now", { admitted: "no" });
}
