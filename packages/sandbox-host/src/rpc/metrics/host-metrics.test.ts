import { describe, expect, it } from "@jest/globals";
import { createMetrics } from "@turnbox/rpc/metrics";
import { SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { SnapshotService } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import { ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { startTestHost } from "../../compose.suite.ts";
import { accessTo } from "../client.suite.ts";
import { registerHostGauges } from "./host-gauges.ts";
import { HOST_METRICS } from "./host-metrics.ts";
import { meterHost } from "./meter-host.ts";

describe("the metrics of a host", () => {
  it("count tool calls, turns, snapshots, rollbacks, forks and sessions, and never name a session", async () => {
    await using test = await startTestHost();
    const metrics = createMetrics(HOST_METRICS);
    registerHostGauges(metrics, test.host);
    const access = accessTo(meterHost(test.host, metrics));
    const sessions = access.client(SessionService);
    const tools = access.client(ToolService);
    const snapshots = access.client(SnapshotService);
    const sessionId = "very-own-session";
    await sessions.createSession({ sessionId });
    const run = (toolCallId: string, cmd: string) =>
      tools.executeTool({ sessionId, toolCallId, toolName: "bash", params: { cmd } });
    await run("c1", "print out err 0");
    await run("c1", "print out err 0");
    await run("c2", "print out err 3");
    await tools
      .executeTool({ sessionId, toolCallId: "c3", toolName: "made-up-by-the-caller", params: {} })
      .catch(() => undefined);
    const { snapshotId } = await snapshots.turnComplete({ sessionId });
    await snapshots.createSnapshot({ sessionId, name: "n" });
    await snapshots.rollbackSession({ sessionId, snapshotId });
    await sessions.forkSession({ sessionId, count: 2 });
    await sessions.pauseSession({ sessionId });

    const { text } = await metrics.render();
    expect(text.split("\n")).toEqual(
      expect.arrayContaining([
        'turnbox_host_tool_calls_total{tool="bash",outcome="ok"} 1',
        'turnbox_host_tool_calls_total{tool="bash",outcome="replayed"} 1',
        'turnbox_host_tool_calls_total{tool="bash",outcome="error"} 1',
        'turnbox_host_tool_calls_total{tool="unknown",outcome="TOOL_NOT_FOUND"} 1',
        'turnbox_host_tool_duration_seconds_count{tool="bash"} 2',
        'turnbox_host_operations_total{operation="create",outcome="ok"} 1',
        'turnbox_host_operations_total{operation="turn",outcome="ok"} 1',
        'turnbox_host_operations_total{operation="snapshot",outcome="ok"} 1',
        'turnbox_host_operations_total{operation="rollback",outcome="ok"} 1',
        'turnbox_host_operations_total{operation="fork",outcome="ok"} 1',
        'turnbox_host_sessions{state="paused"} 1',
        'turnbox_host_sessions{state="active"} 2',
        'turnbox_host_sessions{state="creating"} 0',
        "turnbox_host_active_tools 0",
        "turnbox_host_background_destroys 0",
        "turnbox_host_record_queue_depth 0",
        'turnbox_host_health{grade="healthy"} 1',
        'turnbox_host_file_queue_depth{lane="quick"} 0',
      ]),
    );
    expect(text).toMatch(/^turnbox_host_pool_bytes\{kind="size"\} [1-9]/m);
    expect(text).not.toContain(sessionId);
    expect(text).not.toContain("made-up");
  });

  it("tells failures by their reason", async () => {
    await using test = await startTestHost();
    const metrics = createMetrics(HOST_METRICS);
    const snapshots = accessTo(meterHost(test.host, metrics)).client(SnapshotService);
    await test.create({ sessionId: "s" });
    await snapshots.rollbackSession({ sessionId: "s", snapshotId: "snap-nothere" }).catch(() => undefined);
    expect((await metrics.render()).text).toContain(
      'turnbox_host_operations_total{operation="rollback",outcome="SNAPSHOT_NOT_FOUND"} 1',
    );
  });
});
