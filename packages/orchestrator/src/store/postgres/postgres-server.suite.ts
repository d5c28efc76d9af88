import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chown, copyFile, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

const VERSIONS = "/usr/lib/postgresql";
const USER = "turnbox";
const STEP_TIMEOUT_MS = 60_000;
export const POSTGRES_PASSWORD = "p%ss:w/rd-of-the-test";

/** A PostgreSQL server of its own: own data, own port, own unix user, ended with the test. */
export interface PostgresServer extends AsyncDisposable {
  /** Over loopback, with a password. */
  readonly url: string;
  readonly port: number;
  /** Starts a server that was stopped or crashed. */
  start(): Promise<void>;
  /** Ends all sessions and stops, as an administrator does. */
  stop(): Promise<void>;
  /** Stops without a goodbye; the next start recovers from the log. */
  crash(): Promise<void>;
}

export interface PostgresServerOptions {
  /** Files of a certificate and its key, for TLS. */
  readonly tls?: { readonly certificate: string; readonly key: string };
}

/** Starts a server from Debian's package. Fails if the package is not installed. */
export async function startPostgresServer(options: PostgresServerOptions = {}): Promise<PostgresServer> {
  const programs = await findPrograms();
  const user = process.getuid?.() === 0 ? await postgresUser() : undefined;
  const folder = await mkdtemp(join(tmpdir(), "turnbox-postgres-"));
  const own = async (file: string): Promise<void> => {
    if (user !== undefined) await chown(file, user.uid, user.gid);
  };
  await own(folder);
  const data = join(folder, "data");
  const passwordFile = join(folder, "password");
  await writeFile(passwordFile, POSTGRES_PASSWORD, { mode: 0o600 });
  await own(passwordFile);
  const asUser = user === undefined ? [] : ["--reuid", String(user.uid), "--regid", String(user.gid), "--clear-groups"];
  // The server ends with this process, however that ends.
  const wrapper = (program: string): readonly string[] => [
    ...asUser,
    "--pdeathsig",
    "INT",
    "--",
    join(programs, program),
  ];
  await run(
    "setpriv",
    [
      ...wrapper("initdb"),
      ...["--pgdata", data, "--username", USER, "--pwfile", passwordFile, "--auth", "scram-sha-256"],
      ...["--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync"],
    ],
    { cwd: folder, timeout: STEP_TIMEOUT_MS },
  );
  const tls = await layTls(options.tls, data, own);

  const port = await freePort();
  let child: ChildProcess | undefined;
  const start = async (): Promise<void> => {
    const settings = {
      listen_addresses: "127.0.0.1",
      port: String(port),
      unix_socket_directories: folder,
      fsync: "off",
      max_connections: "60",
      ...tls,
    };
    const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    child = await launch([...wrapper("postgres"), "-D", data, ...flags], folder);
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const ending = child;
    child = undefined;
    if (ending === undefined) return;
    const gone = once(ending, "close");
    ending.kill(signal);
    const timer = setTimeout(() => ending.kill("SIGQUIT"), STEP_TIMEOUT_MS);
    await gone;
    clearTimeout(timer);
  };
  await start();
  return {
    url: `postgresql://${USER}:${encodeURIComponent(POSTGRES_PASSWORD)}@127.0.0.1:${String(port)}/postgres`,
    port,
    start,
    stop: () => end("SIGINT"),
    crash: () => end("SIGQUIT"),
    [Symbol.asyncDispose]: async () => {
      await end("SIGINT");
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function findPrograms(): Promise<string> {
  const versions = await readdir(VERSIONS).catch(() => []);
  const [newest] = versions.map(Number).sort((one, other) => other - one);
  if (newest === undefined) throw new Error(`${VERSIONS} is not there: install Debian's package postgresql`);
  return join(VERSIONS, String(newest), "bin");
}

/** PostgreSQL refuses to run as root; its package brings this user. */
async function postgresUser(): Promise<{ readonly uid: number; readonly gid: number }> {
  const ask = async (flag: "-u" | "-g"): Promise<number> => Number((await run("id", [flag, "postgres"])).stdout);
  return { uid: await ask("-u"), gid: await ask("-g") };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

async function layTls(
  tls: PostgresServerOptions["tls"],
  data: string,
  own: (file: string) => Promise<void>,
): Promise<Record<string, string>> {
  if (tls === undefined) return {};
  await copyFile(tls.certificate, join(data, "server.crt"));
  await copyFile(tls.key, join(data, "server.key"));
  for (const name of ["server.crt", "server.key"]) await own(join(data, name));
  return { ssl: "on" };
}

async function launch(argv: readonly string[], cwd: string): Promise<ChildProcess> {
  const child = spawn("setpriv", [...argv], { cwd, stdio: ["ignore", "ignore", "pipe"] });
  const ready = Promise.withResolvers<void>();
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => {
    said = `${said}${chunk.toString()}`.slice(-10_000);
    if (said.includes("ready to accept connections")) ready.resolve();
  });
  child.once("error", ready.reject);
  child.once("close", () => {
    ready.reject(new Error(`PostgreSQL ended: ${said}`));
  });
  const timer = setTimeout(() => {
    ready.reject(new Error(`PostgreSQL is not ready: ${said}`));
    child.kill("SIGQUIT");
  }, STEP_TIMEOUT_MS);
  await ready.promise;
  clearTimeout(timer);
  return child;
}
