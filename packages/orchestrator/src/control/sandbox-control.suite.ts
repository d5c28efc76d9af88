import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import {
  addressToUrl,
  type ControlCall,
  type CreateSandboxRequest,
  type ForkResult,
  type ForkSandboxRequest,
  type ProcessRef,
  type Sandbox,
  type SandboxControl,
} from "./sandbox-control.ts";

/** What the suite runs on. Sandboxes are made for tenants and labels that nothing else uses, so a shared server will do. */
export interface ControlUnderTest extends AsyncDisposable {
  readonly control: SandboxControl;
  /** A well-formed id of a sandbox that does not exist. */
  readonly absentId: string;
  /** An id that is not of the adapter's form. */
  readonly malformedId: string;
  /** Two tenants to work for. */
  readonly tenants: readonly [string, string];
  /** Whether names are remembered, which is the work of a fleet; otherwise they are refused. */
  readonly names: "supported" | "unsupported";
}

let unique = 0;
const fresh = (prefix: string): string =>
  `${prefix}-${String(process.pid)}-${String(unique++)}-${Date.now().toString(36)}`;

const request = (changes: Partial<CreateSandboxRequest> = {}): CreateSandboxRequest => ({
  idempotencyKey: fresh("key"),
  labels: {},
  template: "",
  resources: {},
  lifetime: {},
  env: {},
  ...changes,
});

/** The contract of `SandboxControl`: what every adapter has, and that it has what it says to have. */
export function sandboxControlSuite(name: string, create: () => Promise<ControlUnderTest>, timeoutMs = 30_000): void {
  const specify = (what: string, test: (under: ControlUnderTest, call: ControlCall) => Promise<void>): void => {
    it(
      what,
      async () => {
        await using under = await create();
        await test(under, { signal: AbortSignal.timeout(timeoutMs), tenant: under.tenants[0] });
      },
      timeoutMs,
    );
  };
  const destroy = async ({ control }: ControlUnderTest, sandbox: Sandbox, call: ControlCall): Promise<void> => {
    await control.destroySandbox({ sandboxId: sandbox.sandboxId, idempotencyKey: fresh("destroy") }, call);
  };
  const fork = (
    { control }: ControlUnderTest,
    { sandboxId }: { readonly sandboxId: string },
    changes: Partial<ForkSandboxRequest>,
    call: ControlCall,
  ): Promise<readonly ForkResult[]> =>
    control.forkSandbox(
      { sandboxId, idempotencyKey: fresh("fork"), snapshotId: "", count: 1, labels: {}, ...changes },
      call,
    );
  const childrenOf = (results: readonly ForkResult[]): readonly Sandbox[] =>
    results.map((result) => {
      if (result.kind === "failed") throw result.error;
      return result.sandbox;
    });
  const ended = async ({ control }: ControlUnderTest, process: ProcessRef, call: ControlCall): Promise<void> => {
    while ((await control.getProcessStatus(process, call)).status !== "exited") await new Promise(setImmediate);
  };
  const refusal = async (work: Promise<unknown>): Promise<SandboxError> => {
    try {
      await work;
    } catch (error) {
      if (error instanceof SandboxError) return error;
      throw error;
    }
    throw new Error("nothing was refused");
  };

  describe(`SandboxControl: ${name}`, () => {
    specify("makes a sandbox that is active and reads back as it was asked for", async (under, call) => {
      const labels = { run: fresh("label") };
      const made = await under.control.createSandbox(request({ labels }), call);
      expect(made.session).toMatchObject({ state: "active", generation: 1, labels });
      const read = await under.control.getSandbox({ sandboxId: made.sandboxId }, call);
      expect(read).toMatchObject({
        sandboxId: made.sandboxId,
        address: made.address,
        session: { state: "active", labels },
      });
      await destroy(under, made, call);
    });

    specify("D24: answers with the host's address and with capabilities that were asked for", async (under, call) => {
      const made = await under.control.createSandbox(request(), call);
      expect(made.address).toMatch(/^[^/]+:\d+$/);
      expect(made.capabilities.snapshots).toBe((await under.control.capabilities(call)).snapshots);
      expect(made.capabilities.storage).not.toBe("");
      await destroy(under, made, call);
    });

    specify("answers every question about what it can do, for itself and for each sandbox", async (under, call) => {
      const made = await under.control.createSandbox(request(), call);
      for (const able of [await under.control.capabilities(call), made.capabilities]) {
        expect(able).toEqual({
          snapshots: expect.any(Boolean),
          rollback: expect.any(Boolean),
          fork: expect.any(Boolean),
          pause: expect.any(Boolean),
          launchProcess: expect.any(Boolean),
          deepPause: expect.any(Boolean),
          pausePreservesProcesses: expect.any(Boolean),
          tierRouting: expect.any(Boolean),
          streamingProgress: expect.any(Boolean),
          concurrentSandboxes: expect.any(Number),
          maxSandboxDurationMs: expect.any(Number),
          storage: expect.stringMatching(/./),
          runtime: expect.stringMatching(/./),
        });
        expect(Math.min(able.concurrentSandboxes, able.maxSandboxDurationMs)).toBeGreaterThanOrEqual(0);
        // What is built on snapshots is not there without them.
        if (!able.snapshots) expect([able.rollback, able.fork]).toEqual([false, false]);
        if (!able.pause) expect([able.deepPause, able.pausePreservesProcesses]).toEqual([false, false]);
      }
      await destroy(under, made, call);
    });

    specify("says where the tools of a sandbox are run, by an address that makes a url", async (under, call) => {
      const made = await under.control.createSandbox(request(), call);
      const connection = await under.control.connectSandbox({ sandboxId: made.sandboxId }, call);
      expect(connection).toMatchObject({ sandboxId: made.sandboxId, sessionId: made.session.sessionId });
      expect(new URL(connection.url).host).toBe(made.address);
      expect(new URL(addressToUrl(made.address)).host).toBe(made.address);
      expect(addressToUrl(connection.url)).toBe(connection.url);
      await destroy(under, made, call);
    });

    specify("pauses and resumes where it can, again if asked, and keeps the rest as it was", async (under, call) => {
      const labels = { run: fresh("label") };
      const { sandboxId, ...made } = await under.control.createSandbox(request({ labels }), call);
      const mutation = (): { sandboxId: string; idempotencyKey: string } => ({
        sandboxId,
        idempotencyKey: fresh("mutation"),
      });
      const pause = () => under.control.pauseSandbox({ ...mutation(), tools: "wait" }, call);
      if (made.capabilities.pause) {
        const paused = { sandboxId, address: made.address, session: { state: "paused", labels } };
        expect(await pause()).toMatchObject(paused);
        expect(await pause()).toMatchObject(paused);
        expect(await under.control.getSandbox({ sandboxId }, call)).toMatchObject(paused);
        const active = { sandboxId, session: { state: "active", generation: 1, labels } };
        expect(await under.control.resumeSandbox(mutation(), call)).toMatchObject(active);
        expect(await under.control.resumeSandbox(mutation(), call)).toMatchObject(active);
      } else {
        expect(await refusal(pause())).toMatchObject({ reason: "UNIMPLEMENTED" });
      }
      await destroy(under, { sandboxId, ...made }, call);
    });

    specify("launches a process, says how it is, and ends it", async (under, call) => {
      const made = await under.control.createSandbox(request(), call);
      const { sandboxId } = made;
      const launch = {
        sandboxId,
        idempotencyKey: fresh("launch"),
        binary: "/bin/sh",
        args: ["-c", "sleep 1000"],
        env: {},
        exposePort: 0,
      };
      if (made.capabilities.launchProcess) {
        const { processId, status } = await under.control.launchProcess(launch, call);
        const process = { sandboxId, processId };
        expect(["starting", "running"]).toContain(status);
        expect(["starting", "running"]).toContain((await under.control.getProcessStatus(process, call)).status);
        await under.control.killProcess({ ...process, signalNumber: 9 }, call);
        await ended(under, process, call);
        const absent = { sandboxId, processId: "nowhere" };
        expect(await refusal(under.control.getProcessStatus(absent, call))).toMatchObject({
          reason: "PROCESS_NOT_FOUND",
        });
      } else {
        expect(await refusal(under.control.launchProcess(launch, call))).toMatchObject({ reason: "UNIMPLEMENTED" });
      }
      await destroy(under, made, call);
    });

    specify("lists what there is, by labels and in pages, each sandbox once", async (under, call) => {
      const labels = { run: fresh("label") };
      const made: Sandbox[] = [];
      for (let index = 0; index < 3; index += 1)
        made.push(await under.control.createSandbox(request({ labels }), call));
      const other = await under.control.createSandbox(request({ labels: { run: fresh("label") } }), call);
      const listed: string[] = [];
      let pageToken = "";
      do {
        const page = await under.control.listSandboxes({ labels, pageSize: 2, pageToken }, call);
        expect(page.sandboxes.length).toBeLessThanOrEqual(2);
        listed.push(...page.sandboxes.map((one) => one.sandboxId));
        pageToken = page.nextPageToken;
      } while (pageToken !== "");
      expect(listed.sort()).toEqual(made.map((one) => one.sandboxId).sort());
      for (const one of [...made, other]) await destroy(under, one, call);
    });

    specify("destroys a sandbox, again if asked, and then it is not found", async (under, call) => {
      const labels = { run: fresh("label") };
      const made = await under.control.createSandbox(request({ labels }), call);
      await destroy(under, made, call);
      const again = await destroy(under, made, call).then(
        () => "destroyed",
        (error: unknown) => SandboxError.from(error).reason,
      );
      expect(["destroyed", "SANDBOX_NOT_FOUND"]).toContain(again);
      const read = await under.control.getSandbox({ sandboxId: made.sandboxId }, call).then(
        (found) => found.session.state,
        (error: unknown) => SandboxError.from(error).reason,
      );
      expect(["destroying", "SANDBOX_NOT_FOUND"]).toContain(read);
    });

    specify("makes one sandbox of one key, at once or later", async (under, call) => {
      const labels = { run: fresh("label") };
      const wanted = request({ labels });
      const [first, second] = await Promise.all([
        under.control.createSandbox(wanted, call),
        under.control.createSandbox(wanted, call),
      ]);
      const third = await under.control.createSandbox(wanted, call);
      expect([second.sandboxId, third.sandboxId]).toEqual([first.sandboxId, first.sandboxId]);
      const page = await under.control.listSandboxes({ labels, pageSize: 10, pageToken: "" }, call);
      expect(page.sandboxes.map((one) => one.sandboxId)).toEqual([first.sandboxId]);
      await destroy(under, first, call);
    });

    specify("refuses a key that comes with another request", async (under, call) => {
      const wanted = request();
      const made = await under.control.createSandbox(wanted, call);
      const changed = { ...wanted, labels: { changed: "yes" } };
      expect(await refusal(under.control.createSandbox(changed, call))).toMatchObject({
        reason: "IDEMPOTENCY_CONFLICT",
      });
      await destroy(under, made, call);
    });

    specify("makes a new sandbox each time where no key is given", async (under, call) => {
      const first = await under.control.createSandbox(request({ idempotencyKey: "" }), call);
      const second = await under.control.createSandbox(request({ idempotencyKey: "" }), call);
      expect(first.sandboxId).not.toBe(second.sandboxId);
      for (const one of [first, second]) await destroy(under, one, call);
    });

    specify("gives a name once, says who has it, and frees it with the sandbox", async (under, call) => {
      const taken = fresh("name");
      if (under.names === "unsupported") {
        expect(await refusal(under.control.createSandbox(request({ name: taken }), call))).toMatchObject({
          reason: "INVALID_ARGUMENT",
          metadata: { field: "name" },
        });
        expect(await refusal(under.control.getSandbox({ sandboxId: "", name: taken }, call))).toMatchObject({
          reason: "INVALID_ARGUMENT",
          metadata: { field: "name" },
        });
        return;
      }
      const first = await under.control.createSandbox(request({ name: taken }), call);
      expect(first.name).toBe(taken);
      expect((await under.control.getSandbox({ sandboxId: first.sandboxId }, call)).name).toBe(taken);
      for (const name of [taken, first.session.sessionId])
        expect((await under.control.getSandbox({ sandboxId: "", name }, call)).sandboxId).toBe(first.sandboxId);
      expect(await refusal(under.control.getSandbox({ sandboxId: "", name: fresh("name") }, call))).toMatchObject({
        reason: "SANDBOX_NOT_FOUND",
      });
      expect(await refusal(under.control.createSandbox(request({ name: taken }), call))).toMatchObject({
        reason: "SANDBOX_EXISTS",
        metadata: { sandboxId: first.sandboxId },
      });
      await destroy(under, first, call);
      const second = await under.control.createSandbox(request({ name: taken }), call);
      expect(second.sandboxId).not.toBe(first.sandboxId);
      await destroy(under, second, call);
    });

    specify("forks children next to their parent, each of its own, that outlive it", async (under, call) => {
      const labels = { run: fresh("label") };
      const parent = await under.control.createSandbox(request({ labels }), call);
      if (!parent.capabilities.fork) {
        expect(await refusal(fork(under, parent, {}, call))).toMatchObject({ reason: "SNAPSHOTS_NOT_AVAILABLE" });
        await destroy(under, parent, call);
        return;
      }
      const children = childrenOf(await fork(under, parent, { count: 2 }, call));
      expect(children).toHaveLength(2);
      const ids = [parent, ...children].map((one) => one.sandboxId);
      expect(new Set(ids).size).toBe(3);
      for (const child of children) {
        expect(child).toMatchObject({ address: parent.address, session: { state: "active", generation: 1, labels } });
        expect(child.name).toBeUndefined();
      }
      const relabelled = childrenOf(await fork(under, parent, { labels: { run: fresh("label"), child: "yes" } }, call));
      expect(relabelled.map((one) => one.session.labels["child"])).toEqual(["yes"]);
      await destroy(under, parent, call);
      for (const { sandboxId, session } of children) {
        expect((await under.control.getSandbox({ sandboxId }, call)).session.state).toBe("active");
        const connection = await under.control.connectSandbox({ sandboxId }, call);
        expect(connection).toMatchObject({ sandboxId, sessionId: session.sessionId });
      }
      const listed = await under.control.listSandboxes({ labels, pageSize: 10, pageToken: "" }, call);
      expect(listed.sandboxes.map((one) => one.sandboxId)).toEqual(
        expect.arrayContaining(children.map((one) => one.sandboxId)),
      );
      for (const child of [...children, ...relabelled]) await destroy(under, child, call);
    });

    specify("forks once for one key, and refuses the key with another request", async (under, call) => {
      const parent = await under.control.createSandbox(request(), call);
      if (!parent.capabilities.fork) {
        await destroy(under, parent, call);
        return;
      }
      const idempotencyKey = fresh("fork");
      const first = childrenOf(await fork(under, parent, { count: 2, idempotencyKey }, call));
      const again = childrenOf(await fork(under, parent, { count: 2, idempotencyKey }, call));
      expect(again.map((one) => one.sandboxId)).toEqual(first.map((one) => one.sandboxId));
      expect(await refusal(fork(under, parent, { count: 1, idempotencyKey }, call))).toMatchObject({
        reason: "IDEMPOTENCY_CONFLICT",
      });
      for (const one of [parent, ...first]) await destroy(under, one, call);
    });

    specify("forks nothing of a snapshot, a sandbox or a tenant that has it not", async (under, call) => {
      const parent = await under.control.createSandbox(request(), call);
      expect(await refusal(fork(under, parent, { snapshotId: "snap-nowhere" }, call))).toMatchObject({
        reason: parent.capabilities.fork ? "SNAPSHOT_NOT_FOUND" : "SNAPSHOTS_NOT_AVAILABLE",
      });
      const stranger = { ...call, tenant: under.tenants[1] };
      for (const [sandboxId, caller] of [
        [parent.sandboxId, stranger],
        [under.absentId, call],
      ] as const) {
        expect(await refusal(fork(under, { sandboxId }, {}, caller))).toMatchObject({ reason: "SANDBOX_NOT_FOUND" });
      }
      await destroy(under, parent, call);
    });

    specify("does not find what is not there", async (under, call) => {
      const absent = { sandboxId: under.absentId };
      expect(await refusal(under.control.getSandbox(absent, call))).toMatchObject({ reason: "SANDBOX_NOT_FOUND" });
      expect(await refusal(under.control.connectSandbox(absent, call))).toMatchObject({ reason: "SANDBOX_NOT_FOUND" });
    });

    specify("names the field of an id that is not one of its own", async (under, call) => {
      const malformed = { sandboxId: under.malformedId };
      const expected = { reason: "INVALID_ARGUMENT", metadata: { field: "sandbox_id" } };
      expect(await refusal(under.control.getSandbox(malformed, call))).toMatchObject(expected);
      expect(await refusal(under.control.destroySandbox({ ...malformed, idempotencyKey: "" }, call))).toMatchObject(
        expected,
      );
    });

    specify("keeps tenants apart", async (under, call) => {
      const stranger = { ...call, tenant: under.tenants[1] };
      const labels = { run: fresh("label") };
      const made = await under.control.createSandbox(request({ labels }), call);
      const sandboxId = made.sandboxId;
      expect(await refusal(under.control.getSandbox({ sandboxId }, stranger))).toMatchObject({
        reason: "SANDBOX_NOT_FOUND",
      });
      expect(await refusal(under.control.connectSandbox({ sandboxId }, stranger))).toMatchObject({
        reason: "SANDBOX_NOT_FOUND",
      });
      await destroy(under, made, stranger).catch(() => undefined);
      expect((await under.control.listSandboxes({ labels, pageSize: 10, pageToken: "" }, stranger)).sandboxes).toEqual(
        [],
      );
      expect((await under.control.getSandbox({ sandboxId }, call)).session.state).toBe("active");
      await destroy(under, made, call);
    });

    specify("does nothing for a caller that is gone already", async (under, call) => {
      const labels = { run: fresh("label") };
      const gone = { ...call, signal: AbortSignal.abort() };
      await expect(under.control.createSandbox(request({ labels }), gone)).rejects.toThrow();
      expect((await under.control.listSandboxes({ labels, pageSize: 10, pageToken: "" }, call)).sandboxes).toEqual([]);
    });
  });
}
