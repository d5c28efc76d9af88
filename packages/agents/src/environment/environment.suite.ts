import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { hasReason, type Reason } from "@turnbox/client";
import type {
  EnvironmentConfig,
  ExecutionEnvironment,
  ToolProgress,
  ToolRequest,
  ToolResponse,
} from "./execution-environment.ts";

export interface EnvironmentHarness extends AsyncDisposable {
  /** A new one, which has no session yet. */
  environment(): ExecutionEnvironment;
  /** A session that does not exist. */
  config(): EnvironmentConfig;
  /** A config that `create` fails with after it has begun. */
  failingConfig(): EnvironmentConfig;
  /** How many sessions there are on the other side; none if there is no other side. */
  sessionCount(): Promise<number>;
}

export interface EnvironmentSuiteOptions {
  /** Of a real one; tests in memory need none. */
  readonly timeoutMs?: number;
}

let calls = 0;
export const toolRequest = (
  toolName: string,
  params: Readonly<Record<string, unknown>>,
  more: Partial<ToolRequest> = {},
): ToolRequest => {
  calls += 1;
  return { toolName, toolCallId: `call-${String(calls)}`, params, ...more };
};
const bash = (cmd: string, more: Partial<ToolRequest> = {}): ToolRequest => toolRequest("bash", { cmd }, more);

/** The reason that a call fails for; `none` if it does not. */
export async function reasonOf(call: Promise<unknown>): Promise<Reason | "none"> {
  try {
    await call;
    return "none";
  } catch (thrown) {
    if (hasReason(thrown, "INTERNAL")) throw thrown;
    return (thrown as { readonly reason: Reason }).reason;
  }
}

/** What every environment promises. */
export function environmentSuite(
  name: string,
  open: () => Promise<EnvironmentHarness>,
  { timeoutMs = 30_000 }: EnvironmentSuiteOptions = {},
): void {
  describe(`ExecutionEnvironment: ${name}`, () => {
    let harness: EnvironmentHarness;
    /** One session for the tests that only run tools. */
    let shared: ExecutionEnvironment;
    beforeAll(async () => {
      harness = await open();
      shared = harness.environment();
      await shared.create(harness.config());
    }, timeoutMs);
    afterAll(async () => {
      await shared.destroy();
      await harness[Symbol.asyncDispose]();
    }, timeoutMs);

    const withSession = async (work: (environment: ExecutionEnvironment) => Promise<void>): Promise<void> => {
      const environment = harness.environment();
      await environment.create(harness.config());
      try {
        await work(environment);
      } finally {
        await environment.destroy();
      }
    };
    /** Runs a command that ends only when it is ended, and resolves when it has begun. */
    const begin = async (
      environment: ExecutionEnvironment,
      signal?: AbortSignal,
    ): Promise<{ readonly ended: Promise<ToolResponse> }> => {
      const begun = Promise.withResolvers<void>();
      const options = signal === undefined ? {} : { signal };
      const ended = environment.executeTool(bash("echo begun; sleep 60"), () => begun.resolve(), options);
      ended.catch(() => undefined);
      await Promise.race([begun.promise, ended]);
      return { ended };
    };

    it(
      "is creating before it is created, active then, and destroyed in the end",
      async () => {
        const environment = harness.environment();
        expect(await environment.state()).toBe("creating");
        await environment.create(harness.config());
        expect(await environment.state()).toBe("active");
        await environment.destroy();
        expect(await environment.state()).toBe("destroyed");
      },
      timeoutMs,
    );

    it(
      "refuses tools and lifecycle calls where there is no session, before it and after it",
      async () => {
        const environment = harness.environment();
        const { pause, snapshots, rollback } = environment.capabilities();
        const expected = (has: boolean) => (has ? "SESSION_NOT_ACTIVE" : "CAPABILITY_NOT_SUPPORTED");
        const look = async () => [
          await reasonOf(environment.executeTool(bash("echo hi"))),
          await reasonOf(environment.pause()),
          await reasonOf(environment.resume()),
          await reasonOf(environment.createSnapshot("s")),
          await reasonOf(environment.rollback("s")),
        ];
        const refusals = [
          "SESSION_NOT_ACTIVE",
          expected(pause),
          expected(pause),
          expected(snapshots),
          expected(rollback),
        ];
        expect(await look()).toEqual(refusals);
        await environment.destroy();
        expect(await look()).toEqual(refusals);
        expect(await reasonOf(environment.create(harness.config()))).toBe("INVALID_STATE");
      },
      timeoutMs,
    );

    it(
      "has one session, which is created once",
      async () => {
        expect(await reasonOf(shared.create(harness.config()))).toBe("INVALID_STATE");
        expect(await shared.state()).toBe("active");
      },
      timeoutMs,
    );

    it(
      "leaves nothing behind where create fails, and can be created then (D37)",
      async () => {
        const environment = harness.environment();
        const before = await harness.sessionCount();
        expect(await reasonOf(environment.create({ ...harness.config(), sessionId: "../up" }))).toBe(
          "INVALID_ARGUMENT",
        );
        expect(await reasonOf(environment.create(harness.failingConfig()))).not.toBe("none");
        expect([await environment.state(), await harness.sessionCount()]).toEqual(["creating", before]);
        await environment.create(harness.config());
        await environment.destroy();
        expect(await harness.sessionCount()).toBe(before);
      },
      timeoutMs,
    );

    it(
      "answers with the output and the exit code of a command; one that fails is an answer",
      async () => {
        const fine = await shared.executeTool(bash("echo hello"));
        expect(fine).toMatchObject({ exitCode: 0, isError: false, exitReason: "exited", tier: 2 });
        expect(fine.content).toContain("hello");
        expect(await shared.executeTool(bash("echo no; exit 3"))).toMatchObject({ exitCode: 3, isError: true });
      },
      timeoutMs,
    );

    it(
      "tells the output of each stream in order, from its first byte on, and nothing after the answer",
      async () => {
        const told: ToolProgress[] = [];
        const response = await shared.executeTool(bash("echo one; echo oops >&2; echo two"), (progress) => {
          told.push(progress);
        });
        const count = told.length;
        const of = (stream: ToolProgress["stream"]) => told.filter((one) => one.stream === stream);
        const text = (stream: ToolProgress["stream"]) => Buffer.concat(of(stream).map(({ data }) => data)).toString();
        expect([text("stdout"), text("stderr")]).toEqual(["one\ntwo\n", "oops\n"]);
        for (const stream of ["stdout", "stderr"] as const) {
          let next = 0;
          for (const { offset, data } of of(stream)) {
            expect(offset).toBe(next);
            next += data.length;
          }
        }
        expect(response.content).toContain("two");
        expect(told).toHaveLength(count);
      },
      timeoutMs,
    );

    it(
      "has file tools that see the files of commands, and commands that see theirs",
      async () => {
        await shared.executeTool(bash("echo from bash > seen.txt"));
        const run = async (tool: string, params: Readonly<Record<string, unknown>>) =>
          (await shared.executeTool(toolRequest(tool, params))).content;
        expect(await run("read_file", { path: "seen.txt" })).toContain("from bash");
        await run("edit_file", { path: "seen.txt", old_string: "bash", new_string: "edit" });
        await run("write_file", { path: "made.txt", content: "from write\n" });
        expect((await shared.executeTool(bash("cat seen.txt; cat made.txt"))).content).toContain(
          "from edit\nfrom write",
        );
        expect(await run("grep", { pattern: "from write" })).toContain("made.txt:1:from write");
        for (const listing of [await run("list_dir", { path: "." }), await run("glob", { pattern: "*.txt" })]) {
          expect(listing).toContain("made.txt");
          expect(listing).toContain("seen.txt");
        }
        const missing = await shared
          .executeTool(toolRequest("read_file", { path: "missing.txt" }))
          .catch(() => undefined);
        expect(missing?.isError ?? true).toBe(true);
      },
      timeoutMs,
    );

    it(
      "takes a path as a path, whatever a shell would make of it (D40)",
      async () => {
        const path = "a'; echo pwned > pwned; echo $(id) `id` \"b.txt";
        await shared.executeTool(toolRequest("write_file", { path, content: "plain\n" }));
        const read = await shared.executeTool(toolRequest("read_file", { path }));
        expect([read.isError, read.content.includes("plain")]).toEqual([false, true]);
        expect((await shared.executeTool(bash("cat pwned"))).exitCode).toBe(1);
      },
      timeoutMs,
    );

    it(
      "refuses tools and parameters that it does not know",
      async () => {
        expect(await reasonOf(shared.executeTool(toolRequest("dance", {})))).toBe("TOOL_NOT_FOUND");
        const unknown = toolRequest("read_file", { path: "a", colour: "red" });
        expect(await reasonOf(shared.executeTool(unknown))).toBe("INVALID_ARGUMENT");
      },
      timeoutMs,
    );

    it(
      "ends a command at its timeout, as an answer",
      async () => {
        const response = await shared.executeTool(bash("sleep 60", { timeoutMs: 300 }));
        expect(response).toMatchObject({ exitCode: 124, exitReason: "timed_out", isError: true });
      },
      timeoutMs,
    );

    it(
      "ends a call with its signal",
      async () => {
        const caller = new AbortController();
        const { ended } = await begin(shared, caller.signal);
        caller.abort();
        expect(await reasonOf(ended)).toBe("CANCELLED");
        expect((await shared.executeTool(bash("echo after"))).exitCode).toBe(0);
      },
      timeoutMs,
    );

    it(
      "ends a call whose listener fails, for the listener's reason",
      async () => {
        const enough = new Error("enough");
        const call = shared.executeTool(bash("echo begun; sleep 60"), () => {
          throw enough;
        });
        await expect(call).rejects.toMatchObject({ reason: "INTERNAL", cause: enough });
        expect((await shared.executeTool(bash("echo after"))).exitCode).toBe(0);
      },
      timeoutMs,
    );

    it(
      "runs tools at the same time, each with its own answer",
      async () => {
        const words = Array.from({ length: 8 }, (_, index) => `word${String(index)}`);
        const answers = await Promise.all(words.map((word) => shared.executeTool(bash(`echo ${word}`))));
        expect(answers.map(({ content }) => content.trim())).toEqual(words);
      },
      timeoutMs,
    );

    it(
      "pauses and resumes, each more than once, and runs no tools meanwhile; or says that it cannot",
      async () => {
        await withSession(async (environment) => {
          if (!environment.capabilities().pause) {
            for (const refused of [environment.pause(), environment.resume()])
              expect(await reasonOf(refused)).toBe("CAPABILITY_NOT_SUPPORTED");
            return;
          }
          await environment.pause();
          await environment.pause();
          expect(await environment.state()).toBe("paused");
          expect(await reasonOf(environment.executeTool(bash("echo hi")))).toBe("SESSION_NOT_ACTIVE");
          await environment.resume();
          await environment.resume();
          expect(await environment.state()).toBe("active");
          expect((await environment.executeTool(bash("echo hi"))).exitCode).toBe(0);
        });
      },
      timeoutMs,
    );

    it(
      "goes back to a snapshot; or says that it cannot",
      async () => {
        const { snapshots, rollback } = shared.capabilities();
        if (!snapshots) expect(await reasonOf(shared.createSnapshot("s"))).toBe("CAPABILITY_NOT_SUPPORTED");
        if (!rollback) expect(await reasonOf(shared.rollback("s"))).toBe("CAPABILITY_NOT_SUPPORTED");
        if (!snapshots || !rollback) return;
        await withSession(async (environment) => {
          await environment.executeTool(bash("echo before > file"));
          const snapshot = await environment.createSnapshot("good");
          expect(snapshot).toMatchObject({ name: "good", createdAt: expect.any(Date) });
          await environment.executeTool(bash("echo after > file"));
          expect(await reasonOf(environment.rollback("no-such-snapshot"))).toBe("SNAPSHOT_NOT_FOUND");
          await environment.rollback(snapshot.id);
          expect((await environment.executeTool(bash("cat file"))).content).toContain("before");
        });
      },
      timeoutMs,
    );

    it(
      "survives lifecycle and tool calls at the same time: each is done or refused",
      async () => {
        await withSession(async (environment) => {
          const { pause } = environment.capabilities();
          const round = (index: number) => [
            reasonOf(environment.executeTool(bash(`echo ${String(index)}`))),
            reasonOf(environment.state()),
            ...(pause ? [reasonOf(environment.pause()), reasonOf(environment.resume())] : []),
          ];
          const reasons = await Promise.all([0, 1, 2, 3].flatMap(round));
          for (const reason of reasons) expect(["none", "SESSION_NOT_ACTIVE", "TOOLS_IN_FLIGHT"]).toContain(reason);
          expect(await environment.state()).toBe("active");
          expect((await environment.executeTool(bash("echo hi"))).exitCode).toBe(0);
        });
      },
      timeoutMs,
    );

    it(
      "destroys once, however often and from however many sides it is asked, and ends what runs",
      async () => {
        const before = await harness.sessionCount();
        const environment = harness.environment();
        await environment.create(harness.config());
        const { ended } = await begin(environment);
        await Promise.all([environment.destroy(), environment.destroy(), environment.destroy()]);
        await environment.destroy();
        expect(await reasonOf(ended)).toBe("SESSION_NOT_ACTIVE");
        expect([await environment.state(), await harness.sessionCount()]).toEqual(["destroyed", before]);
      },
      timeoutMs,
    );
  });
}
