import { setTimeout as delay } from "node:timers/promises";
import { SIGNAL, type TestHost } from "../compose.suite.ts";
import type { Session } from "../session/session.ts";
import type { LaunchRequest } from "./launch.ts";
import type { LaunchedProcess } from "./launched-process.ts";
import { readOutput } from "./read-output.ts";

export const CALL = { signal: SIGNAL };

export function request(
  binary: string,
  args: readonly string[] = [],
  more: Partial<LaunchRequest> = {},
): LaunchRequest {
  return {
    idempotencyKey: "",
    payload: JSON.stringify([binary, args]),
    expectedGeneration: undefined,
    binary,
    args,
    env: {},
    cwd: "/workspace",
    terminal: null,
    port: 0,
    ...more,
  };
}

export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error("the condition did not come true in time");
    await delay(10);
  }
}

export async function outputOf({ host }: TestHost, process: LaunchedProcess, offset = 0): Promise<string> {
  let text = "";
  for await (const { data } of readOutput(process, { offset, atEnd: "wait", signal: SIGNAL }, host.clock))
    text += Buffer.from(data).toString("utf8");
  return text;
}

export async function ended(process: LaunchedProcess): Promise<LaunchedProcess["row"]["end"]> {
  await until(() => process.row.end !== null);
  return process.row.end;
}

export const launch = (
  { host }: TestHost,
  session: Session,
  ...args: Parameters<typeof request>
): Promise<LaunchedProcess> => host.launchProcess(session, request(...args), CALL);
