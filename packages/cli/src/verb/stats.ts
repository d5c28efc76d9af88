import type { Command } from "commander";
import type { HostReport, HostStats, SandboxStats } from "@turnbox/client";
import { toErrorReport } from "../error-report.ts";
import { exitCodeOf } from "../exit-code.ts";
import { formatSize } from "../format/size.ts";
import { formatTable, type TableLook } from "../format/table.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { tableLook } from "../output.ts";

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
  const { signal } = invocation;
  using turnbox = invocation.turnbox(options);
  const sandbox = await turnbox.handle(id, { signal });
  const stats = toStatsView(await sandbox.stats({ signal }));
  await invocation.output(options).result({ json: { sandboxId: sandbox.id, ...stats }, text: formatStats(stats) });
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

const toStatsView = (stats: SandboxStats): StatsView => ({
  ...stats,
  at: stats.at.toISOString(),
  memoryLimitBytes: stats.memoryLimitBytes === 0 ? null : stats.memoryLimitBytes,
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

async function showHosts(options: ServerOptions, invocation: Invocation): Promise<void> {
  const { signal } = invocation;
  using turnbox = invocation.turnbox(options);
  const reports = await turnbox.fleet.hosts({ signal });
  const output = invocation.output(options);
  await output.result({
    json: { hosts: reports.map(toReportView) },
    text: formatHosts(
      reports.flatMap(({ instanceId, url, stats }) =>
        stats === undefined ? [] : [toHostView({ instanceId, url }, stats)],
      ),
      tableLook(output),
    ),
  });
  const silent = reports.flatMap(({ instanceId, error }) => (error === undefined ? [] : [{ instanceId, error }]));
  for (const { instanceId, error } of silent) await output.note(`${instanceId}: ${error.reason}: ${error.message}`);
  const [first] = silent;
  if (first !== undefined) invocation.exitWith(exitCodeOf(first.error));
}

type HostAt = Pick<HostReport, "instanceId" | "url">;

const toReportView = ({ instanceId, url, stats, error }: HostReport) =>
  error === undefined ? toHostView({ instanceId, url }, stats) : { instanceId, url, ...toErrorReport(error) };

/** The documented shape of what a host has and uses under `--json`. */
const toHostView = ({ instanceId, url }: HostAt, stats: HostStats) => ({
  instanceId,
  url,
  at: stats.at.toISOString(),
  status: stats.status,
  cpus: stats.cpus,
  loadAverage: stats.loadAverage,
  memoryBytes: stats.memoryBytes,
  memoryAvailableBytes: stats.memoryAvailableBytes,
  serviceMemoryBytes: stats.serviceMemoryBytes,
  sessionCount: stats.sandboxCount,
  maxSessions: stats.maxSandboxes ?? null,
  activeTools: stats.activeTools,
  poolState: stats.poolState,
  poolSizeBytes: stats.poolSizeBytes,
  poolAvailableBytes: stats.poolAvailableBytes,
  errors: stats.errors,
});

function formatHosts(hosts: readonly ReturnType<typeof toHostView>[], look: TableLook): string {
  return formatTable(
    ["HOST", "STATUS", "SESSIONS", "TOOLS", "LOAD", "CPUS", "MEMORY FREE", "POOL", "POOL FREE"],
    hosts.map((host) => [
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
