import { create, type DescMethod, type DescService, getOption } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Verb, verb } from "@turnbox/protocol/turnbox/common/v1/access_pb";
import { FleetService } from "@turnbox/protocol/turnbox/control/v1/fleet_pb";
import { SandboxControlService } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { FileService } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import { HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { ProcessService } from "@turnbox/protocol/turnbox/host/v1/process_pb";
import { SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { SnapshotService } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import { ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { startServer, type TestServer } from "../support/server.ts";

const CONTROL: readonly DescService[] = [SandboxControlService, FleetService];
const HOST: readonly DescService[] = [
  SessionService,
  ToolService,
  SnapshotService,
  ProcessService,
  FileService,
  HostService,
];

let server: TestServer;
let hostUrl: string;
/** A token that is good, and bound to another sandbox. */
let foreignToken: string;
let sessionId: string;
beforeAll(async () => {
  server = await startServer();
  sessionId = String((await server.json("create"))["sandboxId"]).split(":")[2] ?? "";
  const other = String((await server.json("create"))["sandboxId"]);
  const connection = await server.json("connect", other);
  hostUrl = String(connection["url"]);
  foreignToken = String(connection["token"]);
}, 120_000);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
}, 120_000);

const transportTo = (baseUrl: string, token: string | null): Transport =>
  createConnectTransport({
    baseUrl,
    httpVersion: "2",
    interceptors: [
      (next) => (request) => {
        if (token !== null) request.header.set("authorization", `Bearer ${token}`);
        return next(request);
      },
    ],
  });

/** Calls a method of any kind about the victim's session; answers with the code of its failure. */
async function codeOf(method: DescMethod, transport: Transport): Promise<Code | "ok"> {
  const ids = { sessionId, sandboxId: `fleet:local-1:${sessionId}` };
  const fields = Object.fromEntries(
    method.input.fields
      .filter(({ localName }) => localName in ids)
      .map(({ localName }) => [localName, ids[localName as keyof typeof ids]]),
  );
  const nested = method.input.fields.find(
    (field) => field.fieldKind === "message" && ["call", "header"].includes(field.localName),
  );
  const request = create(method.input, nested === undefined ? fields : nestedRequest(nested.localName, ids));
  const client = createClient(method.parent, transport) as unknown as Record<string, (input: unknown) => unknown>;
  try {
    const input = method.methodKind === "client_streaming" ? once(request) : request;
    const answer = client[method.localName]?.(input);
    if (method.methodKind === "server_streaming") for await (const _ of answer as AsyncIterable<unknown>) break;
    else await answer;
    return "ok";
  } catch (thrown) {
    return ConnectError.from(thrown).code;
  }
}

const nestedRequest = (name: string, ids: Readonly<Record<string, string>>) =>
  name === "call"
    ? { call: { sessionId: ids["sessionId"] } }
    : { part: { case: "header", value: { sessionId: ids["sessionId"] } } };

async function* once<Value>(value: Value): AsyncIterable<Value> {
  yield value;
}

const methods = (services: readonly DescService[]) => services.flatMap((service) => service.methods);

/** The verb that a method needs, as its proto says. */
const verbOf = (method: DescMethod): Verb => getOption(method, verb);

describe("attack 57: every method of the contract, by its proto", () => {
  it("refuses callers without a token and with a bad one", async () => {
    for (const [url, services] of [
      [server.url, CONTROL],
      [hostUrl, HOST],
    ] as const) {
      for (const token of [null, "x", "a.b.c", `${server.token}x`, "eyJhbGciOiJub25lIn0.e30."]) {
        const transport = transportTo(url, token);
        for (const method of methods(services)) {
          expect([method.toString(), token, await codeOf(method, transport)]).toEqual([
            method.toString(),
            token,
            Code.Unauthenticated,
          ]);
        }
      }
    }
  }, 120_000);

  it("refuses a token that is bound to another sandbox, but for what belongs to no sandbox", async () => {
    const nobodys = new Set([
      "turnbox.host.v1.HostService.GetCapabilities",
      "turnbox.control.v1.SandboxControlService.GetCapabilities",
    ]);
    for (const [url, services] of [
      [server.url, CONTROL],
      [hostUrl, HOST],
    ] as const) {
      const transport = transportTo(url, foreignToken);
      for (const method of methods(services)) {
        const name = `${method.parent.typeName}.${method.name}`;
        // An upload is refused at its header, which a method without a handler never reads.
        const refusals =
          method.methodKind === "client_streaming"
            ? [Code.PermissionDenied, Code.Unimplemented]
            : [Code.PermissionDenied];
        const code = await codeOf(method, transport);
        expect([name, code]).toEqual([name, nobodys.has(name) ? "ok" : refusals.find((refusal) => refusal === code)]);
      }
    }
  }, 120_000);

  it("refuses a token of the sandbox itself that allows everything but the method's verb", async () => {
    const all = [Verb.READ, Verb.EXECUTE, Verb.FILES, Verb.TURN, Verb.LIFECYCLE, Verb.NETWORK];
    const owner = createClient(SandboxControlService, transportTo(server.url, server.token));
    const sandboxId = `fleet:local-1:${sessionId}`;
    for (const lacking of all) {
      const { token } = await owner.connectSandbox({ sandboxId, verbs: all.filter((one) => one !== lacking) });
      for (const [url, services] of [
        [server.url, CONTROL],
        [hostUrl, HOST],
      ] as const) {
        const transport = transportTo(url, token);
        for (const method of methods(services).filter((one) => verbOf(one) === lacking))
          expect([method.toString(), await codeOf(method, transport)]).toEqual([
            method.toString(),
            Code.PermissionDenied,
          ]);
      }
    }
  }, 120_000);

  it("refuses a look-up by name with a token that is bound to a sandbox, also for a name that is not in use", async () => {
    const named = createClient(SandboxControlService, transportTo(server.url, server.token));
    const { sandboxId } = await named.createSandbox({ name: "victim-by-name" });
    expect((await named.getSandbox({ name: "victim-by-name" })).sandbox?.sandboxId).toBe(sandboxId);
    const bound = createClient(SandboxControlService, transportTo(server.url, foreignToken));
    for (const name of ["victim-by-name", "not-in-use"])
      await expect(bound.getSandbox({ name })).rejects.toEqual(
        expect.objectContaining({ code: Code.PermissionDenied }),
      );
    await named.destroySandbox({ sandboxId });
  }, 120_000);

  it("attack 41: a sandbox's own token neither changes its network nor gets a token that does", async () => {
    const owner = createClient(SandboxControlService, transportTo(server.url, server.token));
    const sandboxId = `fleet:local-1:${sessionId}`;
    const policy = { allowOutbound: true, allowList: ["169.254.169.254/32"] };
    const { token } = await owner.connectSandbox({ sandboxId });
    const own = createClient(SessionService, transportTo(hostUrl, token));
    const denied = expect.objectContaining({ code: Code.PermissionDenied });
    await expect(own.updateNetworkPolicy({ sessionId, policy })).rejects.toEqual(denied);
    await expect(own.forkSession({ sessionId, networkPolicy: { allowOutbound: true } })).rejects.toEqual(denied);
    const again = createClient(SandboxControlService, transportTo(server.url, token));
    await expect(again.connectSandbox({ sandboxId, verbs: [Verb.NETWORK] })).rejects.toEqual(denied);
    const renewed = await again.connectSandbox({ sandboxId });
    const other = createClient(SessionService, transportTo(hostUrl, renewed.token));
    await expect(other.updateNetworkPolicy({ sessionId, policy })).rejects.toEqual(denied);
    // Who owns the sandbox asks for the verb, and changes what the operator leaves open.
    const given = await owner.connectSandbox({ sandboxId, verbs: [Verb.NETWORK] });
    const holder = createClient(SessionService, transportTo(hostUrl, given.token));
    await holder.updateNetworkPolicy({ sessionId, policy: { allowOutbound: true } });
    await expect(holder.updateNetworkPolicy({ sessionId, policy })).rejects.toEqual(
      expect.objectContaining({ code: Code.InvalidArgument }),
    );
  }, 120_000);

  it("positive control: the home's token reads the victim's session", async () => {
    const { session } = await createClient(SessionService, transportTo(hostUrl, server.token)).getSession({
      sessionId,
    });
    expect(session?.sessionId).toBe(sessionId);
  });
});
