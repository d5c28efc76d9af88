import { readFileSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import {
  type ConfigEntry,
  type ConfigOf,
  type ConfigSources,
  describeConfig,
  parseConfig,
  SandboxError,
  setting,
} from "@turnbox/core";
import { privateRangeFault } from "./network-policy/bounds.ts";
import { RECORD_SETTINGS } from "./record-settings.ts";

const MiB = 1024 * 1024;
const GiB = 1024 * MiB;

/** The shape of a name in the pool; the storage knows which ones are taken. */
const POOL_NAME = /^[a-z][a-z0-9._-]{0,62}$/;
const DATASET_NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/;
/** IPv4 addresses with or without a port. */
const NAMESERVERS = /^\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?(?:,\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?)*$/;

/** All settings of the host, with defaults. Read from the section `host` of `<home>/config.json` and from TURNBOX_*. */
export const HOST_SETTINGS = {
  storageBackend: setting.choice({
    env: "TURNBOX_STORAGE_BACKEND",
    description: "Where session files live; local-disk has no snapshots.",
    default: "zfs",
    values: ["zfs", "local-disk"],
  }),
  containerRuntime: setting.choice({
    env: "TURNBOX_CONTAINER_RUNTIME",
    description: "What runs code; none runs it on this machine without isolation.",
    default: "gvisor",
    values: ["gvisor", "none"],
  }),
  bindAddress: setting.text({
    env: "TURNBOX_HOST_BIND_ADDRESS",
    description: "The address the host listens on; any but loopback needs TLS.",
    default: "127.0.0.1",
  }),
  advertiseAddr: setting.text({
    env: "TURNBOX_ADVERTISE_ADDR",
    description: "The address at which callers connect to the host and its ports.",
    default: "127.0.0.1",
  }),
  nameservers: setting.text({
    env: "TURNBOX_NAMESERVERS",
    description:
      "Who is asked for names that sandboxes may look up, as `address:port,...`; absent means the machine's own.",
    default: null,
    pattern: NAMESERVERS,
  }),
  privateRanges: setting.textList({
    env: "TURNBOX_PRIVATE_RANGES",
    description:
      "Private ranges that network policies may open, as CIDRs; all others stay closed, whatever a policy lists.",
    default: [],
  }),
  allowMetadata: setting.flag({
    env: "TURNBOX_ALLOW_METADATA",
    description: "Whether network policies may open the metadata addresses of clouds, which hand out credentials.",
    default: false,
  }),
  tlsCertificatePath: setting.filePath({
    env: "TURNBOX_HOST_TLS_CERTIFICATE",
    description: "PEM file of the certificate.",
    default: null,
  }),
  tlsKeyPath: setting.filePath({
    env: "TURNBOX_HOST_TLS_KEY",
    description: "PEM file of the certificate's key.",
    default: null,
  }),
  poolSize: setting.bytes({
    env: "TURNBOX_POOL_SIZE",
    description: "Size of a pool that has to be made; absent means 20 GiB or half of the free disk.",
    default: null,
    min: GiB,
  }),
  poolName: setting.text({
    env: "TURNBOX_POOL_NAME",
    description: "The name of the pool; absent means one that belongs to the home alone.",
    default: null,
    pattern: POOL_NAME,
  }),
  basesDataset: setting.text({
    env: "TURNBOX_BASES_DATASET",
    description: "The dataset of the pool that holds the templates.",
    default: "bases",
    pattern: DATASET_NAME,
  }),
  sessionsDataset: setting.text({
    env: "TURNBOX_SESSIONS_DATASET",
    description: "The dataset of the pool that holds the sessions.",
    default: "sessions",
    pattern: DATASET_NAME,
  }),
  sessionsRootDir: setting.filePath({
    env: "TURNBOX_SESSIONS_ROOT_DIR",
    description: "Where local-disk keeps its files; absent means a directory of the host's own.",
    default: null,
  }),
  warmSessions: setting.int({
    env: "TURNBOX_WARM_SESSIONS",
    description:
      "How many warm sessions, booted, are kept for each template in use; 0 boots each when it is asked for.",
    default: 0,
    min: 0,
    max: 1000,
  }),
  warmNetworkSessions: setting.int({
    env: "TURNBOX_WARM_NETWORK_SESSIONS",
    description: "How many more are kept warm, for each template in use, in a network that leads nowhere yet.",
    default: 0,
    min: 0,
    max: 1000,
  }),
  warmRefillDelay: setting.durationMs({
    env: "TURNBOX_WARM_REFILL_DELAY",
    description: "How long after a create the next session is made ready.",
    default: 500,
  }),
  warmRefillRate: setting.int({
    env: "TURNBOX_WARM_REFILL_RATE",
    description: "Most sessions that are made ready in a second.",
    default: 2,
    min: 1,
    max: 1000,
  }),
  maxSessions: setting.int({
    env: "TURNBOX_MAX_SESSIONS",
    description: "Most sessions at once; absent means one for each 8 MiB of the machine's memory, 0 no limit.",
    default: null,
    min: 0,
    max: 100_000,
  }),
  defaultSessionQuota: setting.bytes({
    env: "TURNBOX_DEFAULT_SESSION_QUOTA",
    description:
      "A session's allowance on top of its template if the request names none, at most maxSessionQuota; 0 means no limit.",
    default: 10 * GiB,
  }),
  maxSnapshotsPerSession: setting.int({
    env: "TURNBOX_MAX_SNAPSHOTS_PER_SESSION",
    description: "Most snapshots of all kinds that a session keeps, the oldest going first; 0 means no limit.",
    default: 1000,
    min: 0,
    max: 100_000,
  }),
  maxProcessesPerSession: setting.int({
    env: "TURNBOX_MAX_PROCESSES_PER_SESSION",
    description: "Most launched processes and terminals of a session that run at once.",
    default: 64,
    min: 1,
    max: 1000,
  }),
  perToolSnapshots: setting.flag({
    env: "TURNBOX_PER_TOOL_SNAPSHOTS",
    description: "Whether a snapshot is taken after each tool call that may have changed something.",
    default: false,
  }),
  snapshotPrefix: setting.text({
    env: "TURNBOX_SNAPSHOT_PREFIX",
    description: "What the names of turn snapshots begin with.",
    default: "turn",
  }),
  defaultCpus: setting.fraction({
    env: "TURNBOX_DEFAULT_CPUS",
    description: "A session's processor time in cores if the request names none; 0 means no limit.",
    default: 0,
    max: 1024,
  }),
  defaultMemory: setting.bytes({
    env: "TURNBOX_DEFAULT_MEMORY",
    description: "A session's memory if the request names none; 0 means no limit.",
    default: 2 * GiB,
  }),
  defaultPids: setting.int({
    env: "TURNBOX_DEFAULT_PIDS",
    description: "A session's processes and threads if the request names none.",
    default: 4096,
    min: 16,
    max: 1_000_000,
  }),
  maxSessionQuota: setting.bytes({
    env: "TURNBOX_MAX_SESSION_QUOTA",
    description: "The largest allowance that a request may name; absent means the size of the pool, 0 no limit.",
    default: null,
  }),
  maxCpus: setting.fraction({
    env: "TURNBOX_MAX_CPUS",
    description: "The most cores that a request may name; absent means the machine's, 0 no limit.",
    default: null,
    max: 1024,
  }),
  maxMemory: setting.bytes({
    env: "TURNBOX_MAX_MEMORY",
    description: "The most memory that a request may name; absent means the machine's, 0 no limit.",
    default: null,
  }),
  maxPids: setting.int({
    env: "TURNBOX_MAX_PIDS",
    description:
      "The most processes and threads that a request may name; absent means 4096 or defaultPids, 0 no limit.",
    default: null,
    min: 0,
    max: 4_194_304,
  }),
  maxTtl: setting.durationMs({
    env: "TURNBOX_MAX_TTL",
    description:
      "The longest life of a session, also of one that names none; absent means 365 days for those that name one.",
    default: null,
  }),
  memoryReserve: setting.bytes({
    env: "TURNBOX_MEMORY_RESERVE",
    description:
      "Memory of the machine that all sandboxes together leave alone; absent means 1/16 of it, 0 leaves nothing.",
    default: null,
  }),
  toolTimeout: setting.durationMs({
    env: "TURNBOX_TOOL_TIMEOUT",
    description: "How long a tool call may take if it names no bound.",
    default: 300_000,
    min: 1,
    max: 3_600_000,
  }),
  toolOutput: setting.bytes({
    env: "TURNBOX_TOOL_OUTPUT",
    description: "How much of each output stream a tool's result keeps.",
    default: 256 * 1024,
    max: 4 * MiB,
  }),
  toolJournalSession: setting.bytes({
    env: "TURNBOX_TOOL_JOURNAL_SESSION",
    description: "How much output of a session's tool calls is kept on disk for readers that come back.",
    default: 512 * MiB,
  }),
  toolJournalTotal: setting.bytes({
    env: "TURNBOX_TOOL_JOURNAL_TOTAL",
    description: "How much output of tool calls is kept on disk for all sessions together.",
    default: 2 * GiB,
  }),
  ...RECORD_SETTINGS,
  processJournalSession: setting.bytes({
    env: "TURNBOX_PROCESS_JOURNAL_SESSION",
    description: "What the output of a session's launched processes may take, also while no service looks after it.",
    default: GiB,
    min: 64 * MiB,
  }),
  toolCallRetention: setting.durationMs({
    env: "TURNBOX_TOOL_CALL_RETENTION",
    description: "How long a tool call that has ended is known by its id.",
    default: 86_400_000,
    min: 60_000,
  }),
  maxToolCallsPerSession: setting.int({
    env: "TURNBOX_MAX_TOOL_CALLS_PER_SESSION",
    description: "Most tool calls that have ended and are known by their ids, for each session; the oldest go first.",
    default: 10_000,
    min: 1,
    max: 1_000_000,
  }),
  poolSpaceWarnThreshold: setting.fraction({
    env: "TURNBOX_POOL_SPACE_WARN_THRESHOLD",
    description: "The part of the pool in use from which the host is degraded.",
    default: 0.85,
  }),
  poolSpaceCritThreshold: setting.fraction({
    env: "TURNBOX_POOL_SPACE_CRIT_THRESHOLD",
    description: "The part of the pool in use from which there are no new sessions and snapshots.",
    default: 0.95,
  }),
  healthCheckInterval: setting.durationMs({
    env: "TURNBOX_HEALTH_CHECK_INTERVAL",
    description: "How often the host looks after its own health.",
    default: 30_000,
    min: 1000,
  }),
  pauseDrainTimeout: setting.durationMs({
    env: "TURNBOX_PAUSE_DRAIN_TIMEOUT",
    description: "How long an operation waits for running tools.",
    default: 30_000,
  }),
  shutdownTimeout: setting.durationMs({
    env: "TURNBOX_SHUTDOWN_TIMEOUT",
    description: "How long a stop waits for calls in flight.",
    default: 30_000,
  }),
  maxTemplateSize: setting.bytes({
    env: "TURNBOX_MAX_TEMPLATE_SIZE",
    description: "Largest template, packed and unpacked.",
    default: 8 * GiB,
  }),
  logLevel: setting.choice({
    env: "TURNBOX_LOG_LEVEL",
    description: "How much is logged.",
    default: "info",
    values: ["debug", "info", "warn", "error"],
  }),
} as const;

export type HostConfig = ConfigOf<typeof HOST_SETTINGS>;

/** Variables of Turnbox that other parts read. */
const FOREIGN = [
  "TURNBOX_HOME",
  "TURNBOX_PORT",
  "TURNBOX_HOSTS",
  "TURNBOX_HEADROOM",
  "TURNBOX_CREATE_TIMEOUT",
  "TURNBOX_FLEET_HEALTH_INTERVAL",
  "TURNBOX_HOST_READY_TIMEOUT",
  "TURNBOX_NO_APT",
  "TURNBOX_FULL",
  "TURNBOX_CRASH_FILE",
  "TURNBOX_BIND_ADDRESS",
  "TURNBOX_TLS_CERTIFICATE",
  "TURNBOX_TLS_KEY",
  "TURNBOX_URL",
  "TURNBOX_TOKEN",
  "TURNBOX_TOKEN_FILE",
  "TURNBOX_MCP_TOKEN",
] as const;

function sources(home: string): ConfigSources {
  const file = readSection(join(home, "config.json"));
  return { env: process.env, foreignEnv: FOREIGN, ...(file === undefined ? {} : { file }) };
}

/** The section `host` of the home's config.json; undefined if there is none. */
function readSection(path: string): unknown {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
  try {
    return (JSON.parse(text) as Readonly<Record<string, unknown>>)["host"];
  } catch (cause) {
    throw new SandboxError("CONFIG_INVALID", `${path} is not JSON`, { cause });
  }
}

export function loadConfig(home: string): HostConfig {
  const config = parseConfig(HOST_SETTINGS, sources(home));
  if (config.poolSpaceWarnThreshold > config.poolSpaceCritThreshold) {
    throw new SandboxError("CONFIG_INVALID", "poolSpaceWarnThreshold must not be above poolSpaceCritThreshold");
  }
  if (config.basesDataset === config.sessionsDataset) {
    throw new SandboxError("CONFIG_INVALID", "basesDataset and sessionsDataset must differ");
  }
  const fault = config.privateRanges.map((entry) => privateRangeFault(entry)).find((found) => found !== undefined);
  if (fault !== undefined) throw new SandboxError("CONFIG_INVALID", `privateRanges: ${fault}`);
  return config;
}

/** The configuration key by key, for `turnbox doctor`. */
export function explainConfig(home: string): readonly ConfigEntry[] {
  return describeConfig(HOST_SETTINGS, sources(home));
}

/** The configured size of the pool, or 20 GiB, or half of what is free if that is less. */
export async function poolSizeBytes(config: HostConfig, directory: string): Promise<number> {
  if (config.poolSize !== null) return config.poolSize;
  const { bavail, bsize } = await statfs(directory);
  const half = Math.floor((bavail * bsize) / 2 / MiB) * MiB;
  return Math.min(20 * GiB, Math.max(GiB, half));
}

/** Where system programs are looked up: in the service's own PATH, and nowhere else. */
export function systemPath(): string {
  return process.env["PATH"] ?? "/usr/sbin:/usr/bin:/sbin:/bin";
}

/** A file that names the crash point at which the host ends itself; only tests set it. */
export function crashFile(): string | null {
  return process.env["TURNBOX_CRASH_FILE"] ?? null;
}

/** The standard variables that decide about traces. */
export function tracingEnvironment(): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith("OTEL_")));
}
