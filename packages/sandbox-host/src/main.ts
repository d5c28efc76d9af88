import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { acquireHomeLock, createChildCommandRunner, invalidArgument, SandboxError } from "@turnbox/core";
import { composeBackends } from "./compose-backends.ts";
import { crashFile, explainConfig, loadConfig, systemPath } from "./config.ts";
import { examine } from "./doctor/examine.ts";
import { closeInherited, countExternalMemory, endOnUnhandled, onStopRequest } from "./process-setup.ts";
import { openRecords } from "./record/records.ts";
import { rebuildRecords } from "./recovery/rebuild.ts";
import { serve } from "./serve.ts";
import { MAX_TEMPLATE_ENTRIES } from "./template/archive.ts";
import { buildDebian, DEBIAN_PACKAGES, parsePackages } from "./template/debian.ts";
import { HostCommandRunner } from "./system/command/host-command-runner.ts";
import { buildOci } from "./template/oci.ts";

const USAGE = `usage: turnbox-sandbox-host COMMAND

  serve --home DIR --data-dir DIR [--instance ID] [--port N]   run a host; its parent holds the other end of stdin
        [--heartbeat]                                          and say on stdout each second that it is not stuck
  doctor --home DIR [--json]                                   try every part that a host needs
  end-all --home DATA_DIR                                      end all containers of a stopped host; files stay
  rebuild-records --home DATA_DIR                              make lost records of a stopped host again from its pool
  reset --home DATA_DIR                                        destroy everything of a stopped host
  build-template debian [--packages A,B] --output FILE         build a template's archive
  build-template oci --home DIR --layout PATH [--ref NAME] --scratch DIR --output FILE
                                                               the same from an OCI image layout
`;

/** One day; maintenance of a stopped host never takes as long. */
const MAINTENANCE_MS = 86_400_000;

async function main(argv: readonly string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      home: { type: "string" },
      "data-dir": { type: "string" },
      instance: { type: "string" },
      port: { type: "string", default: "0" },
      heartbeat: { type: "boolean", default: false },
      json: { type: "boolean" },
      output: { type: "string" },
      layout: { type: "string" },
      ref: { type: "string" },
      scratch: { type: "string" },
      packages: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  const [command, ...rest] = positionals;
  const need = (name: "home" | "data-dir" | "output" | "layout" | "scratch"): string => {
    const value = values[name];
    if (value === undefined) throw invalidArgument(`--${name}`, "is required");
    return resolve(value);
  };
  if (values.help === true || command === undefined) {
    process.stdout.write(USAGE);
    return;
  }
  switch (command) {
    case "serve":
      await runServe({
        home: need("home"),
        dataDirectory: need("data-dir"),
        port: parsePort(values.port),
        heartbeat: values.heartbeat ? "given" : "none",
      });
      return;
    case "doctor":
      await runDoctor(need("home"));
      return;
    case "end-all":
      await endAll(need("home"));
      return;
    case "rebuild-records":
      await rebuild(need("home"));
      return;
    case "reset":
      await reset(need("home"));
      return;
    case "build-template":
      await runBuild(rest[0], { need, ref: values.ref ?? null, packages: values.packages ?? null });
      return;
    default:
      throw invalidArgument("command", `${command} is not a command\n${USAGE}`);
  }
}

async function runServe(options: {
  readonly home: string;
  readonly dataDirectory: string;
  readonly port: number;
  readonly heartbeat: "given" | "none";
}): Promise<void> {
  closeInherited();
  countExternalMemory();
  const stop = new AbortController();
  const stopNow = new AbortController();
  onStopRequest((which) => {
    if (which === "again") stopNow.abort();
    else stop.abort(new SandboxError("SHUTTING_DOWN", "the host was asked to stop"));
  });
  try {
    await serve({ ...options, path: systemPath(), crashFile: crashFile(), stop: stop.signal, stopNow: stopNow.signal });
  } catch (thrown) {
    const { reason, message, remedy } = SandboxError.from(thrown);
    process.stdout.write(`${JSON.stringify({ event: "failed", reason, message, remedy })}\n`);
    throw thrown;
  }
}

async function runDoctor(home: string): Promise<void> {
  const config = loadConfig(home);
  const path = systemPath();
  // The home may not exist yet, and looking must not make it.
  await using scratch = await makeScratch();
  const dataDirectory = scratch.path;
  await using runner = new HostCommandRunner({ path });
  const { runtime, workers } = await composeBackends({ config, dataDirectory, path }, runner);
  await using _workers = workers;
  const report = await examine({
    runner,
    path,
    runtime,
    required: requiredParts(config),
    config: explainConfig(home),
    signal: AbortSignal.timeout(MAINTENANCE_MS),
  });
  process.stdout.write(`${JSON.stringify(report)}\n`);
}

async function makeScratch(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), "turnbox-doctor-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

function requiredParts(config: ReturnType<typeof loadConfig>): ReadonlySet<string> {
  const ofStorage = config.storageBackend === "zfs" ? ["zfs", "mount"] : [];
  const ofRuntime = config.containerRuntime === "gvisor" ? ["runsc"] : [];
  return new Set(["runtime", "busybox", "bash", ...ofStorage, ...ofRuntime]);
}

/** The home of a host's data directory: `<home>/hosts/<instance>`. */
function homeOf(dataDirectory: string): string {
  if (basename(dirname(dataDirectory)) !== "hosts") {
    throw invalidArgument("--home", "must be the data directory of a host, HOME/hosts/INSTANCE");
  }
  return dirname(dirname(dataDirectory));
}

async function endAll(dataDirectory: string): Promise<void> {
  await using _lock = await acquireHomeLock(join(dataDirectory, "host.lock"));
  await endContainers(dataDirectory);
}

async function endContainers(dataDirectory: string): Promise<void> {
  const config = loadConfig(homeOf(dataDirectory));
  const path = systemPath();
  await using runner = new HostCommandRunner({ path });
  const { runtime, network } = await composeBackends({ config, dataDirectory, path }, runner);
  const call = { signal: AbortSignal.timeout(MAINTENANCE_MS) };
  const ids = await runtime.list(call);
  for (const id of ids) await runtime.stop(id, call);
  await runtime.close(call);
  await network.open([], call);
  process.stdout.write(`${JSON.stringify({ ended: ids.length })}\n`);
}

async function rebuild(dataDirectory: string): Promise<void> {
  await using _lock = await acquireHomeLock(join(dataDirectory, "host.lock"));
  const config = loadConfig(homeOf(dataDirectory));
  const path = systemPath();
  await using runner = new HostCommandRunner({ path });
  const { storage } = await composeBackends({ config, dataDirectory, path }, runner);
  const call = { signal: AbortSignal.timeout(MAINTENANCE_MS) };
  await storage.open(call);
  await using records = await openRecords(join(dataDirectory, "host.db"));
  process.stdout.write(`${JSON.stringify(await rebuildRecords({ records, storage }, call))}\n`);
}

async function reset(dataDirectory: string): Promise<void> {
  await using _lock = await acquireHomeLock(join(dataDirectory, "host.lock"));
  await endContainers(dataDirectory);
  const config = loadConfig(homeOf(dataDirectory));
  const path = systemPath();
  await using runner = new HostCommandRunner({ path });
  const { storage } = await composeBackends({ config, dataDirectory, path }, runner);
  await storage.destroyAll({ signal: AbortSignal.timeout(MAINTENANCE_MS) });
}

async function runBuild(
  what: string | undefined,
  options: {
    readonly need: (name: "home" | "output" | "layout" | "scratch") => string;
    readonly ref: string | null;
    readonly packages: string | null;
  },
): Promise<void> {
  const { need, ref } = options;
  const runner = createChildCommandRunner({ path: systemPath() });
  const stop = new AbortController();
  onStopRequest(() => {
    stop.abort(new SandboxError("CANCELLED", "the build was asked to stop"));
  });
  const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(MAINTENANCE_MS)]);
  if (what === "debian") {
    const packages = options.packages === null ? DEBIAN_PACKAGES : parsePackages(options.packages);
    const report = (line: string): void => void process.stderr.write(`${line}\n`);
    await buildDebian({ output: need("output"), packages }, { runner, signal, report });
  } else if (what === "oci") {
    const { maxTemplateSize: maxBytes } = loadConfig(need("home"));
    const build = { path: need("layout"), ref, output: need("output"), scratch: need("scratch") };
    await buildOci(build, { runner, signal, limits: { maxBytes, maxEntries: MAX_TEMPLATE_ENTRIES } });
  } else {
    throw invalidArgument("build-template", "can build debian and oci only");
  }
}

function parsePort(raw: string): number {
  const port = Number(raw);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw invalidArgument("--port", "must be from 0 to 65535");
  return port;
}

endOnUnhandled();
main(process.argv.slice(2)).then(
  // What is still open (a watch, a pooled connection) does not keep a stopped host alive.
  () => process.exit(0),
  (thrown: unknown) => {
    const error = SandboxError.from(thrown);
    const cause =
      error.reason === "INTERNAL" ? `\n${thrown instanceof Error ? (thrown.stack ?? "") : String(thrown)}` : "";
    process.stderr.write(`${error.reason}: ${error.message}\nremedy: ${error.remedy}${cause}\n`);
    process.exit(1);
  },
);
