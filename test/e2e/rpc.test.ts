import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  type OtlpReceiver,
  type ReceivedSpan,
  startOtlpReceiver,
} from "../../packages/rpc/src/trace/otlp-receiver.suite.ts";
import { poll, REPO, run } from "../support/process.ts";
import { startServer, type TestServer } from "../support/server.ts";

let receiver: OtlpReceiver;
let server: TestServer;
let sandboxId: string;
let host: { readonly url: string; readonly token: string; readonly sessionId: string };
beforeAll(async () => {
  receiver = await startOtlpReceiver();
  server = await startServer({
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_BSP_SCHEDULE_DELAY: "100",
    },
  });
  sandboxId = String((await server.json("create"))["sandboxId"]);
  host = (await server.json("connect", sandboxId)) as typeof host;
}, 120_000);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await receiver[Symbol.asyncDispose]();
}, 120_000);

const CONTROL = "turnbox.control.v1.SandboxControlService";
const bufCurl = async (protocol: string, token: string, url: string, ...args: readonly string[]) =>
  await run(join(REPO, "node_modules/.bin/buf"), [
    "curl",
    "--http2-prior-knowledge",
    ...["--protocol", protocol],
    ...["--reflect-header", "*"],
    ...["-H", `Authorization: Bearer ${token}`],
    ...args,
    url,
  ]);

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/** JSON over HTTP/1.1, as plain curl sends it. */
async function post(url: string, method: string, body: unknown, token?: string): Promise<Answer> {
  const response = await fetch(`${url}/${method}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}
const reasonOf = ({ body }: Answer): unknown =>
  (body as { details?: { debug?: { reason?: string } }[] }).details?.[0]?.debug?.reason;

describe.each(["connect", "grpc"])("buf curl over %s, without a schema", (protocol) => {
  it("lists the services of both servers by reflection", async () => {
    expect((await bufCurl(protocol, server.token, server.url, "--list-services")).stdout.split("\n")).toEqual(
      expect.arrayContaining([CONTROL, "turnbox.control.v1.FleetService", "grpc.health.v1.Health"]),
    );
    expect((await bufCurl(protocol, host.token, host.url, "--list-services")).stdout).toContain(
      "turnbox.host.v1.ToolService",
    );
  });

  it("creates a sandbox and runs a tool in it", async () => {
    const created = await bufCurl(
      protocol,
      server.token,
      `${server.url}/${CONTROL}/CreateSandbox`,
      "-d",
      '{"template":"mini"}',
    );
    expect(JSON.parse(created.stdout)).toMatchObject({ sandboxId: expect.stringMatching(/^fleet:local-1:/) });
    const call = {
      sessionId: host.sessionId,
      toolCallId: `${protocol}-1`,
      toolName: "bash",
      params: { cmd: "echo $((6 * 7))" },
    };
    const ran = await bufCurl(
      protocol,
      host.token,
      `${host.url}/turnbox.host.v1.ToolService/ExecuteTool`,
      "-d",
      JSON.stringify(call),
    );
    expect(JSON.parse(ran.stdout)).toMatchObject({
      content: "42\n",
      exitCode: 0,
      exitReason: "EXIT_REASON_EXITED",
    });
  }, 30_000);
});

describe("plain JSON over HTTP/1.1", () => {
  it("runs a tool once for its id", async () => {
    const call = {
      sessionId: host.sessionId,
      toolCallId: "once",
      toolName: "bash",
      params: { cmd: "echo x >> count; wc -l < count" },
    };
    const first = await post(host.url, "turnbox.host.v1.ToolService/ExecuteTool", call, host.token);
    const again = await post(host.url, "turnbox.host.v1.ToolService/ExecuteTool", call, host.token);
    expect(first.body).toMatchObject({ content: "1\n" });
    expect(again.body).toMatchObject({ content: "1\n", replayed: true });
  }, 30_000);

  it("gives the right code and reason for each refusal (D23)", async () => {
    const control = (method: string, body: unknown, token?: string) =>
      post(server.url, `${CONTROL}/${method}`, body, token);
    const wrongToken = await control("ListSandboxes", {}, "wrong");
    expect([wrongToken.status, reasonOf(wrongToken)]).toEqual([401, "UNAUTHENTICATED"]);
    const noToken = await control("ListSandboxes", {});
    expect([noToken.status, reasonOf(noToken)]).toEqual([401, "UNAUTHENTICATED"]);
    const unknown = await control("GetSandbox", { sandboxId: "fleet:local-1:nothere" }, server.token);
    expect([unknown.body["code"], reasonOf(unknown)]).toEqual(["not_found", "SANDBOX_NOT_FOUND"]);
    const badId = await control("GetSandbox", { sandboxId: "no-such-form" }, server.token);
    expect([badId.body["code"], reasonOf(badId)]).toEqual(["invalid_argument", "INVALID_ARGUMENT"]);
    const template = await control("CreateSandbox", { template: "nope" }, server.token);
    expect([template.body["code"], reasonOf(template)]).toEqual(["not_found", "TEMPLATE_NOT_FOUND"]);
    const session = await post(
      host.url,
      "turnbox.host.v1.SessionService/GetSession",
      { sessionId: "nothere" },
      server.token,
    );
    expect([session.body["code"], reasonOf(session)]).toEqual(["not_found", "SESSION_NOT_FOUND"]);
    const sessionId = await post(
      host.url,
      "turnbox.host.v1.SessionService/CreateSession",
      { sessionId: "a..b" },
      server.token,
    );
    expect([sessionId.body["code"], reasonOf(sessionId)]).toEqual(["invalid_argument", "INVALID_ARGUMENT"]);
    const missing = await post(server.url, "turnbox.control.v1.FleetService/NoSuchMethod", {}, server.token);
    expect([missing.body["code"], reasonOf(missing)]).toEqual(["unimplemented", "UNIMPLEMENTED"]);
  }, 30_000);

  it("keeps a sandbox's token to its sandbox, whether or not the other exists", async () => {
    const other = String((await server.json("create"))["sandboxId"]).split(":")[2];
    const answers = await Promise.all(
      [other, "nothere"].map((sessionId) =>
        post(host.url, "turnbox.host.v1.SessionService/GetSession", { sessionId }, host.token),
      ),
    );
    expect(answers.map((answer) => [answer.status, reasonOf(answer)])).toEqual([
      [403, "PERMISSION_DENIED"],
      [403, "PERMISSION_DENIED"],
    ]);
    const listed = await post(host.url, "turnbox.host.v1.SessionService/ListSessions", {}, host.token);
    expect(reasonOf(listed)).toBe("PERMISSION_DENIED");
  }, 30_000);

  it("answers health without a token, on both services", async () => {
    for (const url of [server.url, host.url]) {
      expect((await post(url, "grpc.health.v1.Health/Check", {})).body).toEqual({ status: "SERVING" });
    }
  });
});

describe("what operators see", () => {
  it("has metrics of both services, for the home's token", async () => {
    const page = async (url: string, token: string): Promise<string> =>
      await (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text();
    const fleet = await poll("the fleet's look at its host", async () => {
      const text = await page(server.url, server.token);
      return text.includes('turnbox_fleet_instances{state="active"} 1') ? text : undefined;
    });
    expect(fleet).toMatch(/^turnbox_fleet_sandbox_operations_total\{operation="create",outcome="ok"\} [1-9]/m);
    expect(fleet).toMatch(/^turnbox_fleet_lease_held 1$/m);
    expect(fleet).toMatch(/^process_cpu_seconds_total /m);
    const ofHost = await page(host.url, server.token);
    expect(ofHost).toMatch(/^turnbox_host_tool_calls_total\{tool="bash",outcome="ok"\} [1-9]/m);
    expect(ofHost).toMatch(/^turnbox_host_pool_bytes\{kind="size"\} [1-9]/m);
    expect(await page(host.url, host.token)).toContain("PERMISSION_DENIED");
  }, 30_000);

  it("has one trace from the command line through the orchestrator and the host to the tool", async () => {
    expect(await server.cli("exec", sandboxId, "--", "true")).toMatchObject({ exitCode: 0 });
    const pathOf = (span: ReceivedSpan): readonly string[] => {
      const parent = receiver.spans.find(({ spanId }) => spanId === span.parentSpanId);
      return [...(parent === undefined ? [] : pathOf(parent)), `${span.service} ${span.name}`];
    };
    const pathTo = (service: string, name: string, root: string): Promise<readonly string[]> =>
      poll(
        `the span ${name} of ${service}`,
        () =>
          receiver.spans
            .filter((span) => span.service === service && span.name === name)
            .map(pathOf)
            .find((path) => path[0] === root),
        30_000,
      );
    const create = "turnbox.control.v1.SandboxControlService/CreateSandbox";
    const session = "turnbox.host.v1.SessionService/CreateSession";
    expect(await pathTo("turnbox-sandbox-host", "storage.createSession", "turnbox-cli turnbox create")).toEqual([
      "turnbox-cli turnbox create",
      `turnbox-cli ${create}`,
      `turnbox-orchestrator ${create}`,
      `turnbox-orchestrator ${session}`,
      `turnbox-sandbox-host ${session}`,
      "turnbox-sandbox-host storage.createSession",
    ]);
    const path = await pathTo("turnbox-sandbox-host", "runtime.exec", "turnbox-cli turnbox exec");
    expect(path.slice(-2)).toEqual(["turnbox-sandbox-host tool bash", "turnbox-sandbox-host runtime.exec"]);
  }, 60_000);
});
