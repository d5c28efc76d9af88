import type { Runtime } from "../../runtime.ts";
import type { Rest } from "./rest.ts";

export interface RestingOptions {
  readonly rest: Rest;
  /** Whether the processes that a container lives by are there, and what its own record says of it. */
  readonly liveness: Runtime["liveness"];
}

/**
 * A runtime whose containers are awake while they are used. What is known of one that rests is answered without waking
 * it: services that ask about all their sessions from time to time would keep all of them awake.
 */
export function createRestingRuntime(inner: Runtime, { rest, liveness }: RestingOptions): Runtime {
  const awake = async <Result>(id: string, work: () => Promise<Result>): Promise<Result> => {
    using _held = await rest.hold(id);
    return await work();
  };
  /** Holds until what was begun has ended. */
  const awakeUntilExit = async <Begun extends { readonly exit: Promise<unknown>; kill(): Promise<void> }>(
    id: string,
    begin: () => Promise<Begun>,
  ): Promise<Begun> => {
    const held = await rest.hold(id);
    const letGo = (): void => {
      held[Symbol.dispose]();
    };
    try {
      const begun = await begin();
      void begun.exit.then(letGo, letGo);
      return { ...begun, kill: () => awake(id, () => begun.kill()) };
    } catch (thrown) {
      letGo();
      throw thrown;
    }
  };

  return {
    ...inner,
    start: (spec, call) => awake(spec.id, () => inner.start(spec, call)),
    anticipate: (id, spec, call) => awake(id, () => inner.anticipate(id, spec, call)),
    exec: (id, spec, call) => awakeUntilExit(id, () => inner.exec(id, spec, call)),
    spawn: (id, spec, call) => awake(id, () => inner.spawn(id, spec, call)),
    inspect: async (id, process, call) => {
      using _held = await rest.look(id);
      return await inner.inspect(id, process, call);
    },
    signal: (id, process, spec, call) => awake(id, () => inner.signal(id, process, spec, call)),
    openTerminal: (id, spec, size, call) => awakeUntilExit(id, () => inner.openTerminal(id, spec, size, call)),
    quiesce: (id, call) => awake(id, () => inner.quiesce(id, call)),
    liveness: async (id, call) => {
      if (rest.restingProcesses(id) !== undefined) return await liveness(id, call);
      using _held = await rest.look(id);
      return await inner.liveness(id, call);
    },
    processes: async (id, call) => {
      const resting = rest.restingProcesses(id);
      if (resting !== undefined && (await liveness(id, call)) !== "gone") return resting;
      using _held = await rest.look(id);
      return await inner.processes(id, call);
    },
    stats: async (id, call) => {
      using _held = await rest.look(id);
      return await inner.stats(id, call);
    },
    pause: (id, call) => awake(id, () => inner.pause(id, call)),
    resume: (id, call) => awake(id, () => inner.resume(id, call)),
    // It is ended where it rests: hundreds that are destroyed at once would all be awake while they wait for their turn.
    stop: async (id, call) => {
      await inner.stop(id, call);
      rest.forget(id);
    },
    close: async (call) => {
      rest.close();
      await inner.close(call);
    },
  };
}
