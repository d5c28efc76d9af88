import { stat } from "node:fs/promises";
import { SandboxError } from "@turnbox/core";
import { resolveUrl, type ServerFlags, tokenPath } from "@turnbox/client/internal";
import type { Invocation } from "../invocation.ts";
import { findNode, findPackage } from "../service/service-program.ts";
import type { Part } from "./part.ts";

const PROBE_MS = 3000;

/** What the command line can see by itself. */
export async function examineClient(flags: ServerFlags, invocation: Invocation): Promise<readonly Part[]> {
  return [
    await examineNode(invocation),
    examineOrchestrator(invocation),
    await examineToken(invocation),
    await examineServer(flags, invocation),
  ];
}

async function examineNode({ surroundings, signal }: Invocation): Promise<Part> {
  const part = {
    name: "node",
    required: true,
    without: "the services do not start; the command line talks to servers elsewhere",
    remedy: "run `npm start` in the repository, which brings one, or install Node 24 or newer",
  };
  try {
    const node = await findNode(surroundings, { signal });
    const isOwn = node === process.execPath;
    const version = isOwn ? process.version : await versionOf(node, { surroundings, signal });
    return { ...part, status: "found", version, detail: isOwn ? "" : node };
  } catch (thrown) {
    return { ...part, status: "missing", version: process.version, detail: SandboxError.from(thrown).message };
  }
}

async function versionOf(
  node: string,
  { surroundings, signal }: Pick<Invocation, "surroundings" | "signal">,
): Promise<string> {
  const { stdout } = await surroundings.runner.run(
    { command: node, args: ["--version"], deadlineMs: PROBE_MS },
    { signal },
  );
  return stdout.trim();
}

function examineOrchestrator({ surroundings }: Invocation): Part {
  const found = findPackage("@turnbox/orchestrator", surroundings.searchFrom);
  return {
    name: "orchestrator",
    status: found === undefined ? "missing" : "found",
    version: found?.version ?? "",
    required: true,
    detail: found === undefined ? "the package @turnbox/orchestrator is not installed beside this command line" : "",
    without: "`turnbox up` has nothing to start; servers elsewhere can be used",
    remedy: "install @turnbox/orchestrator, or use --url and --token",
  };
}

/** Whoever can read the token can do everything. */
async function examineToken({ surroundings: { environment } }: Invocation): Promise<Part> {
  const path = tokenPath(environment.home);
  const part = { name: "token", version: "", required: false, without: "commands need --token" };
  const file = await stat(path).catch(() => undefined);
  if (file === undefined) {
    return {
      ...part,
      status: "missing",
      detail: `${path} is not there`,
      remedy: "start the server once; it writes the token",
    };
  }
  const mode = (file.mode & 0o777).toString(8).padStart(4, "0");
  if ((file.mode & 0o077) === 0) return { ...part, status: "found", detail: `${path}, mode ${mode}`, remedy: "" };
  return {
    ...part,
    status: "broken",
    detail: `${path} has mode ${mode}: other users can read it`,
    without: "every user of this machine can use the server",
    remedy: `chmod 600 ${path}`,
  };
}

async function examineServer(flags: ServerFlags, invocation: Invocation): Promise<Part> {
  const { environment } = invocation.surroundings;
  const part = { name: "server", version: "", required: false, without: "only up, reset and doctor work" };
  const url = resolveUrl(flags, environment);
  try {
    using turnbox = invocation.turnbox(flags);
    const signal = AbortSignal.any([invocation.signal, AbortSignal.timeout(PROBE_MS)]);
    await turnbox.templates({ signal });
    return { ...part, status: "found", detail: url, remedy: "" };
  } catch (thrown) {
    invocation.signal.throwIfAborted();
    const error = SandboxError.from(thrown);
    const isAbsent = error.reason === "SERVER_UNREACHABLE";
    return {
      ...part,
      status: isAbsent ? "missing" : "broken",
      detail: `${error.reason}: ${error.message}`,
      remedy: error.remedy,
    };
  }
}
