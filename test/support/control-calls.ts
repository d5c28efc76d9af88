import { type Json, Refusal } from "./host.ts";
import { poll } from "./process.ts";
import type { TestServer } from "./server.ts";

/** The orchestrator of a test's server, by JSON over HTTP. */
export type Control = Pick<TestServer, "url" | "token">;

export interface SeenSandbox {
  readonly sandboxId: string;
  readonly instanceId: string;
  readonly sessionId: string;
  readonly state: string;
  readonly generation: number;
}

export interface SeenInstance {
  readonly instanceId: string;
  readonly state: string;
  readonly health: string;
  readonly url: string;
  readonly sessionCount?: number;
}

export interface Listed {
  readonly sandboxes: readonly SeenSandbox[];
  readonly unreachableInstances: readonly string[];
}

const CALL_TIMEOUT_MS = 240_000;

/** Calls a method such as `SandboxControlService/GetSandbox`. Throws `Refusal`. */
export async function control(to: Control, method: string, body: Json = {}): Promise<Json> {
  return await post(`${to.url}/turnbox.control.v1.${method}`, to.token, body);
}

export async function createSandbox(to: Control, body: Json = {}): Promise<SeenSandbox> {
  return seen((await control(to, "SandboxControlService/CreateSandbox", body))["sandbox"]);
}

export async function getSandbox(to: Control, sandboxId: string): Promise<SeenSandbox> {
  return seen((await control(to, "SandboxControlService/GetSandbox", { sandboxId }))["sandbox"]);
}

export async function destroySandbox(to: Control, sandboxId: string): Promise<void> {
  await control(to, "SandboxControlService/DestroySandbox", { sandboxId });
}

export async function listSandboxes(to: Control, labels: Readonly<Record<string, string>>): Promise<Listed> {
  const sandboxes: SeenSandbox[] = [];
  const unreachable = new Set<string>();
  for (let pageToken = ""; ; ) {
    const request = { selector: { matchLabels: labels }, page: { pageSize: 100, pageToken } };
    const answer = await control(to, "SandboxControlService/ListSandboxes", request);
    sandboxes.push(...((answer["sandboxes"] ?? []) as readonly unknown[]).map(seen));
    for (const instanceId of (answer["unreachableInstances"] ?? []) as readonly string[]) unreachable.add(instanceId);
    pageToken = (answer["page"] as { readonly nextPageToken?: string } | undefined)?.nextPageToken ?? "";
    if (pageToken === "") return { sandboxes, unreachableInstances: [...unreachable].sort() };
  }
}

export async function listInstances(to: Control): Promise<readonly SeenInstance[]> {
  return ((await control(to, "FleetService/ListInstances"))["instances"] ?? []) as readonly SeenInstance[];
}

/** Waits until so many instances take sandboxes. */
export async function instancesReady(to: Control, count: number, timeoutMs: number): Promise<readonly SeenInstance[]> {
  return await poll(
    `${count} instances to be ready`,
    async () => {
      const ready = (await listInstances(to)).filter(
        ({ state, health }) => /_(READY|ACTIVE)$/.test(state) && health === "healthy",
      );
      return ready.length === count ? ready : undefined;
    },
    timeoutMs,
    250,
  );
}

function seen(sandbox: unknown): SeenSandbox {
  const { sandboxId, session } = sandbox as {
    readonly sandboxId: string;
    readonly session: { readonly state: string; readonly generation: number };
  };
  const [, instanceId = "", sessionId = ""] = sandboxId.split(":");
  return { sandboxId, instanceId, sessionId, state: session.state, generation: session.generation };
}

async function post(url: string, token: string, body: Json): Promise<Json> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
  });
  const answer = (await response.json()) as Json;
  if (response.ok) return answer;
  const details = answer["details"] as readonly { readonly debug?: { readonly reason?: string } }[] | undefined;
  throw new Refusal(url, details?.[0]?.debug?.reason ?? String(answer["code"]), String(answer["message"]));
}
