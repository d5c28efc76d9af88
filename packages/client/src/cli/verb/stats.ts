import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { SandboxError } from "@turnbox/core";
import {
  type GetStatsResponse,
  type HealthCheckResponse,
  HealthStatus,
} from "@turnbox/protocol/turnbox/host/v1/host_pb";
import type { GetSessionStatsResponse } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { CALL_MS } from "../deadline.ts";
import { toErrorReport } from "../error-report.ts";
import { exitCodeOf } from "../exit-code.ts";
import { formatSize } from "../format/size.ts";
import { formatTable, type TableLook } from "../format/table.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { tableLook } from "../output.ts";
import { openSandbox } from "../resolve/resolve-sandbox.ts";
import { assertTrusted, type FleetHost, listHosts } from "../resolve/trusted-hosts.ts";
import { enumWord, toIso } from "../sandbox-view.ts";

export function registerStats(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("stats [id]"))
      .summary("show what a sandbox, or every host, uses")
      .description("Show what a sandbox uses at this moment; without an id, what the hosts have and use."),
    [
      ["turnbox stats web", "processor time, memory, processes and space of a sandbox"],
      ["turnbox stats", "the hosts: load, memory, space, sessions"],
    ],
  ).action(async (id: string | undefined, options: ServerOptions) => {
    if (id === undefined) await showHosts(options, invocation);
    else await showSandbox(id, options, invocation);
  });
}

async function showSandbox(id: string, options: ServerOptions, invocation: Invocation): Promise<void> {
  using server = await invocation.server(options);
  using sandbox = await openSandbox(server, id, invocation);
  const stats = toStatsView(
    await sandbox.host.sessions.getSessionStats(
      { sessionId: sandbox.sessionId },
      { signal: invocation.signal, timeoutMs: CALL_MS.read },
    ),
  );
  await invocation
    .output(options)
    .result({ json: { sandboxId: sandbox.sandboxId, ...stats }, text: formatStats(stats) });
}

/** The documented shape of what a sandbox uses under `--json`. */
interface StatsView {
  readonly at: string | null;
  readonly cpuTimeMs: number;
  readonly memoryBytes: number;
  readonly memoryLimitBytes: number | null;
  readonly pids: number;
  readonly referencedBytes: number;
  readonly spaceUsedBytes: number;
  readonly networkReceivedBytes: number;
  readonly networkSentBytes: number;
}

const toStatsView = (stats: GetSessionStatsResponse): StatsView => ({
  at: toIso(stats.at),
  cpuTimeMs: stats.cpuTime === undefined ? 0 : durationMs(stats.cpuTime),
  memoryBytes: Number(stats.memoryBytes),
  memoryLimitBytes: stats.memoryLimitBytes === 0n ? null : Number(stats.memoryLimitBytes),
  pids: stats.pids,
  referencedBytes: Number(stats.referencedBytes),
  spaceUsedBytes: Number(stats.spaceUsedBytes),
  networkReceivedBytes: Number(stats.networkReceivedBytes),
  networkSentBytes: Number(stats.networkSentBytes),
});

function formatStats(stats: StatsView): string {
  const limit = stats.memoryLimitBytes === null ? "" : ` of ${formatSize(stats.memoryLimitBytes)}`;
  const lines: readonly (readonly [string, string])[] = [
    ["processor time", `${(stats.cpuTimeMs / 1000).toFixed(2)} s`],
    ["memory", `${formatSize(stats.memoryBytes)}${limit}`],
    ["processes", String(stats.pids)],
    ["files", formatSize(stats.referencedBytes)],
    ["on top of the template", formatSize(stats.spaceUsedBytes)],
    ["network", `${formatSize(stats.networkReceivedBytes)} received, ${formatSize(stats.networkSentBytes)} sent`],
  ];
  const width = Math.max(...lines.map(([name]) => name.length));
  return lines.map(([name, value]) => `${name.padEnd(width)}  ${value}\n`).join("");
}

interface HostAnswer extends FleetHost {
  readonly stats: GetStatsResponse;
  readonly health: HealthCheckResponse;
}

interface HostSilence extends FleetHost {
  readonly error: SandboxError;
}

async function showHosts(options: ServerOptions, invocation: Invocation): Promise<void> {
  using server = await invocation.server(options);
  const { signal } = invocation;
  const hosts = await listHosts(server, { signal });
  assertTrusted("hosts are measured", hosts, server);
  const { token } = server.endpoint;
  const answers = await Promise.all(hosts.map((host) => askHost(host, { token, invocation })));
  signal.throwIfAborted();
  const heard = answers.filter((answer) => "stats" in answer);
  const silent = answers.filter((answer) => "error" in answer);
  const output = invocation.output(options);
  await output.result({
    json: { hosts: answers.map((answer) => ("error" in answer ? toSilentView(answer) : toHostView(answer))) },
    text: formatHosts(heard, tableLook(output)),
  });
  for (const { instanceId, error } of silent) await output.note(`${instanceId}: ${error.reason}: ${error.message}`);
  const [first] = silent;
  if (first !== undefined) invocation.exitWith(exitCodeOf(first.error));
}

async function askHost(
  at: FleetHost,
  { token, invocation }: { readonly token: string; readonly invocation: Invocation },
): Promise<HostAnswer | HostSilence> {
  const call = { signal: invocation.signal, timeoutMs: CALL_MS.read };
  using host = invocation.host({ url: at.url, token });
  try {
    const [stats, health] = await Promise.all([host.host.getStats({}, call), host.host.healthCheck({}, call)]);
    return { ...at, stats, health };
  } catch (thrown) {
    return { ...at, error: SandboxError.from(thrown) };
  }
}

const toSilentView = ({ instanceId, url, error }: HostSilence) => ({ instanceId, url, ...toErrorReport(error) });

/** The documented shape of what a host has and uses under `--json`. */
const toHostView = ({ instanceId, url, stats, health }: HostAnswer) => ({
  instanceId,
  url,
  at: toIso(stats.at),
  status: enumWord(HealthStatus[health.status]),
  cpus: stats.cpus,
  loadAverage: stats.loadAverage,
  memoryBytes: Number(stats.memoryBytes),
  memoryAvailableBytes: Number(stats.memoryAvailableBytes),
  serviceMemoryBytes: Number(stats.serviceMemoryBytes),
  sessionCount: stats.sessionCount,
  maxSessions: health.maxSessions === 0 ? null : health.maxSessions,
  activeTools: stats.activeTools,
  poolState: health.poolState,
  poolSizeBytes: Number(health.poolSpace?.sizeBytes ?? 0n),
  poolAvailableBytes: Number(health.poolSpace?.availableBytes ?? 0n),
  errors: health.errors,
});

function formatHosts(answers: readonly HostAnswer[], look: TableLook): string {
  return formatTable(
    ["HOST", "STATUS", "SESSIONS", "TOOLS", "LOAD", "CPUS", "MEMORY FREE", "POOL", "POOL FREE"],
    answers
      .map(toHostView)
      .map((host) => [
        host.instanceId,
        host.status,
        host.maxSessions === null
          ? String(host.sessionCount)
          : `${String(host.sessionCount)}/${String(host.maxSessions)}`,
        String(host.activeTools),
        host.loadAverage.toFixed(2),
        String(host.cpus),
        `${formatSize(host.memoryAvailableBytes)} of ${formatSize(host.memoryBytes)}`,
        host.poolState,
        `${formatSize(host.poolAvailableBytes)} of ${formatSize(host.poolSizeBytes)}`,
      ]),
    { ...look, colors: { healthy: "green", degraded: "yellow", unhealthy: "red" } },
  );
}
