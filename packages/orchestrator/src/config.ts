import { homedir } from "node:os";
import { join } from "node:path";
import { type ConfigOf, type ConfigSources, parseConfig, readIfThere, SandboxError, setting } from "@turnbox/core";
import { EC2_SETTINGS } from "./provisioner/ec2/ec2-settings.ts";
import { FLEET_SETTINGS } from "./fleet/fleet-settings.ts";
import { parseStaticHost } from "./provisioner/static/static-settings.ts";

/** All the orchestrator can be told, with defaults: the section `orchestrator` of `<home>/config.json` and TURNBOX_*. */
export const ORCHESTRATOR_SETTINGS = {
  port: setting.int({
    env: "TURNBOX_PORT",
    description: "The port that callers connect to; 0 lets the system choose.",
    default: 7700,
    min: 0,
    max: 65_535,
  }),
  bindAddress: setting.text({
    env: "TURNBOX_BIND_ADDRESS",
    description: "The address it listens on; any but loopback needs TLS.",
    default: "127.0.0.1",
  }),
  tlsCertificatePath: setting.filePath({
    env: "TURNBOX_TLS_CERTIFICATE",
    description: "PEM file of the certificate.",
    default: null,
  }),
  tlsKeyPath: setting.filePath({
    env: "TURNBOX_TLS_KEY",
    description: "PEM file of the certificate's key.",
    default: null,
  }),
  hosts: setting.int({
    env: "TURNBOX_HOSTS",
    description: "How many sandbox-hosts run on this machine, where it makes them.",
    default: 1,
    min: 1,
    max: 64,
  }),
  headroom: setting.fraction({
    env: "TURNBOX_HEADROOM",
    description: "The part of each host's capacity that placement leaves free.",
    default: 0,
    max: 0.95,
  }),
  createTimeout: setting.durationMs({
    env: "TURNBOX_CREATE_TIMEOUT",
    description: "How long the making of a sandbox may take.",
    default: 180_000,
    min: 1000,
  }),
  fleetHealthInterval: setting.durationMs({
    env: "TURNBOX_FLEET_HEALTH_INTERVAL",
    description: "How often each host is asked how it is.",
    default: 5000,
    min: 100,
  }),
  hostReadyTimeout: setting.durationMs({
    env: "TURNBOX_HOST_READY_TIMEOUT",
    description: "How long a host may take to start; its first start makes a pool and a template.",
    default: 120_000,
    min: 1000,
  }),
  shutdownTimeout: setting.durationMs({
    env: "TURNBOX_SHUTDOWN_TIMEOUT",
    description: "How long a stop waits for calls in flight.",
    default: 30_000,
  }),
  logLevel: setting.choice({
    env: "TURNBOX_LOG_LEVEL",
    description: "How much is logged.",
    default: "info",
    values: ["debug", "info", "warn", "error"],
  }),
  ...FLEET_SETTINGS,
  ...EC2_SETTINGS,
} as const;

export type OrchestratorConfig = ConfigOf<typeof ORCHESTRATOR_SETTINGS>;

/** The sections of `<home>/config.json`; `host` is judged by the hosts. */
const SECTIONS: readonly string[] = ["host", "orchestrator"];

/** Variables that mean the same to a host; all others of the orchestrator are kept from it. */
const SHARED: readonly string[] = ["TURNBOX_SHUTDOWN_TIMEOUT", "TURNBOX_LOG_LEVEL"];
const OWN: readonly string[] = Object.values(ORCHESTRATOR_SETTINGS).map((one) => one.env);

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads the configuration of a home. Variables that are not the orchestrator's are judged by the hosts they go to. */
export function loadConfig(home: string, env: Environment = process.env): OrchestratorConfig {
  const own = Object.fromEntries(Object.entries(env).filter(([name]) => OWN.includes(name)));
  const file = readSection(join(home, "config.json"));
  const sources: ConfigSources = { env: own, ...(file === undefined ? {} : { file }) };
  const config = parseConfig(ORCHESTRATOR_SETTINGS, sources);
  if ((config.tlsCertificatePath === null) !== (config.tlsKeyPath === null)) {
    throw new SandboxError("CONFIG_INVALID", "tlsCertificatePath and tlsKeyPath must be given together");
  }
  checkFleet(config);
  return config;
}

function checkFleet({ minInstances, maxInstances, provisioner, staticHosts }: OrchestratorConfig): void {
  if (minInstances > maxInstances) {
    throw new SandboxError("CONFIG_INVALID", "minInstances must not be more than maxInstances");
  }
  for (const text of staticHosts) parseStaticHost(text);
  if (provisioner === "static" && staticHosts.length === 0) {
    throw new SandboxError("CONFIG_INVALID", "staticHosts must name at least one host");
  }
}

function readSection(path: string): unknown {
  const text = readIfThere(path);
  if (text === undefined) return undefined;
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new SandboxError("CONFIG_INVALID", `${path} is not JSON`, { cause });
  }
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    throw new SandboxError("CONFIG_INVALID", `${path} must hold a JSON object`);
  }
  const unknown = Object.keys(json).filter((key) => !SECTIONS.includes(key));
  if (unknown.length > 0) {
    throw new SandboxError(
      "CONFIG_INVALID",
      `${path}: ${unknown.join(", ")}: only ${SECTIONS.join(" and ")} are known`,
      {
        metadata: { keys: unknown.join(",") },
      },
    );
  }
  return (json as Readonly<Record<string, unknown>>)["orchestrator"];
}

/** The standard variables that decide about traces. */
export function tracingEnvironment(env: Environment = process.env): Environment {
  return Object.fromEntries(Object.entries(env).filter(([name]) => name.startsWith("OTEL_")));
}

/** The whole environment of a sandbox-host: where programs are found, the settings that are its own, and how to trace. */
export function hostEnvironment(home: string, env: Environment = process.env): Readonly<Record<string, string>> {
  const passed = Object.entries(env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined &&
      (["PATH", "HOME"].includes(entry[0]) || /^(TURNBOX|OTEL)_/.test(entry[0])) &&
      (!OWN.includes(entry[0]) || SHARED.includes(entry[0])),
  );
  return { ...Object.fromEntries(passed), TURNBOX_HOME: home };
}

/** Where a home is unless something else is said. */
export function defaultHome(env: Environment = process.env): string {
  const named = env["TURNBOX_HOME"];
  return named === undefined || named === "" ? join(homedir(), ".turnbox") : named;
}
