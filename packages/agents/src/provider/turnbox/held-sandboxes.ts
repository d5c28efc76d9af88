import type { Sandbox } from "@turnbox/client";
import type { SandboxSource } from "./sandbox-source.ts";

/** The sandboxes of a source, with one handle for each. Disposing lets go of all handles; the sandboxes stay. */
export interface HeldSandboxes extends SandboxSource, AsyncDisposable {
  /** Lets go of a sandbox's handle. */
  forget(id: string): Promise<void>;
}

export function holdSandboxes(source: SandboxSource): HeldSandboxes {
  const handles = new Map<string, Sandbox>();
  const hold = async (sandbox: Sandbox): Promise<Sandbox> => {
    const held = handles.get(sandbox.id);
    if (held === undefined) {
      // Letting go of a handle is not the end of a session.
      handles.set(sandbox.id, sandbox.keep());
      return sandbox;
    }
    await sandbox.keep()[Symbol.asyncDispose]();
    return held;
  };
  const forget = async (id: string): Promise<void> => {
    const held = handles.get(id);
    handles.delete(id);
    await held?.[Symbol.asyncDispose]();
  };
  return {
    create: async (options) => await hold(await source.create(options)),
    get: async (id, options) => handles.get(id) ?? (await hold(await source.get(id, options))),
    list: (options) => source.list(options),
    forget,
    [Symbol.asyncDispose]: async () => {
      for (const id of [...handles.keys()]) await forget(id);
    },
  };
}
