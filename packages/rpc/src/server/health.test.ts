import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from "@turnbox/protocol/health/v1/health_pb";
import { createManualClock, createTestAccess } from "@turnbox/core/testing";
import { createHealthBoard } from "./health.ts";
import { createRouterOptions } from "./router-options.ts";

function createServer() {
  const clock = createManualClock();
  const board = createHealthBoard();
  const router = createRouterOptions({ ...createTestAccess({ clock }), clock });
  return { board, client: createClient(Health, createRouterTransport(board.register, { router })) };
}

describe("grpc.health.v1.Health", () => {
  it("tells each service's status, without a token", async () => {
    const { board, client } = createServer();
    expect((await client.check({})).status).toBe(ServingStatus.NOT_SERVING);
    board.set("", "serving");
    board.set("turnbox.host.v1.ToolService", "not_serving");
    expect((await client.check({})).status).toBe(ServingStatus.SERVING);
    expect((await client.check({ service: "turnbox.host.v1.ToolService" })).status).toBe(ServingStatus.NOT_SERVING);
    expect(Object.keys((await client.list({})).statuses).sort()).toEqual(["", "turnbox.host.v1.ToolService"]);
  });

  it("answers not_found for a service that it does not know, as the standard says", async () => {
    const { client } = createServer();
    const thrown: unknown = await client.check({ service: "nobody" }).catch((error: unknown) => error);
    expect(ConnectError.from(thrown).code).toBe(Code.NotFound);
  });

  it("watches changes, from a service that is unknown at first", async () => {
    const { board, client } = createServer();
    const stream = client.watch({ service: "late" })[Symbol.asyncIterator]();
    const next = async (): Promise<ServingStatus | undefined> =>
      ((await stream.next()).value as { status: ServingStatus } | undefined)?.status;
    expect(await next()).toBe(ServingStatus.SERVICE_UNKNOWN);
    board.set("other", "serving");
    board.set("late", "serving");
    expect(await next()).toBe(ServingStatus.SERVING);
    const pending = next();
    board.set("late", "serving");
    board.set("late", "not_serving");
    expect(await pending).toBe(ServingStatus.NOT_SERVING);
    await stream.return?.();
  });
});
