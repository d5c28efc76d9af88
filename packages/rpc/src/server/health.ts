import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from "@turnbox/protocol/health/v1/health_pb";
import { closingSignalOf } from "./call-context.ts";

/** Whether a service serves. */
export type ServiceStatus = "serving" | "not_serving";

/** The state behind `grpc.health.v1.Health`. */
export interface HealthBoard {
  /** Sets what is answered for a service, by its full proto name; the empty name stands for the server as a whole. */
  set(service: string, status: ServiceStatus): void;
  register(router: ConnectRouter): void;
}

const TO_WIRE = { serving: ServingStatus.SERVING, not_serving: ServingStatus.NOT_SERVING } as const;

/** Starts with the server as a whole not serving. */
export function createHealthBoard(): HealthBoard {
  const statuses = new Map<string, ServiceStatus>([["", "not_serving"]]);
  const listeners = new Set<() => void>();

  const wireStatus = (service: string): ServingStatus | undefined => {
    const status = statuses.get(service);
    return status === undefined ? undefined : TO_WIRE[status];
  };

  /**
   * Each status as it is found; changes that cancel out before the reader asks are not reported. A server that begins to close
   * serves no more: that is the last word.
   */
  async function* watch(
    service: string,
    { signal, closing }: { readonly signal: AbortSignal; readonly closing: AbortSignal },
  ): AsyncGenerator<{ status: ServingStatus }> {
    let told: ServingStatus | undefined;
    while (!signal.aborted) {
      const found = wireStatus(service) ?? ServingStatus.SERVICE_UNKNOWN;
      const status = closing.aborted && found === ServingStatus.SERVING ? ServingStatus.NOT_SERVING : found;
      if (status !== told) {
        told = status;
        yield { status };
      } else if (closing.aborted) {
        return;
      } else {
        await nextChange(listeners, [signal, closing]);
      }
    }
  }

  return {
    set: (service, status) => {
      statuses.set(service, status);
      for (const notify of [...listeners]) notify();
    },
    register: (router) => {
      router.service(Health, {
        check: ({ service }) => {
          const status = wireStatus(service);
          // The contract of the standard service names this code.
          if (status === undefined) throw new ConnectError(`unknown service ${JSON.stringify(service)}`, Code.NotFound);
          return { status };
        },
        list: () => ({
          statuses: Object.fromEntries(
            [...statuses].map(([service, status]) => [service, { status: TO_WIRE[status] }]),
          ),
        }),
        watch: ({ service }, context: HandlerContext) =>
          watch(service, { signal: context.signal, closing: closingSignalOf(context) }),
      });
    },
  };
}

async function nextChange(listeners: Set<() => void>, signals: readonly AbortSignal[]): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = (): void => {
      listeners.delete(done);
      for (const signal of signals) signal.removeEventListener("abort", done);
      resolve();
    };
    listeners.add(done);
    for (const signal of signals) signal.addEventListener("abort", done, { once: true });
  });
}
