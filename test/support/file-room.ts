import { readFileSync } from "node:fs";
import type { Client } from "@connectrpc/connect";
import { expect } from "@jest/globals";
import type { FileService } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import { type Canary, createCanary } from "./canary.ts";
import { fileClient } from "./file-client.ts";
import { createVictims, type FileVictims, type Outcome, type Victims } from "./file-victims.ts";
import { startHost, type TestHost } from "./host.ts";
import { createSession, script } from "./host-calls.ts";

/** A real host with one session, whose agent is hostile, and files of the machine that it is after. */
export interface FileRoom extends AsyncDisposable {
  readonly host: TestHost;
  readonly sessionId: string;
  readonly canary: Canary;
  readonly files: Client<typeof FileService>;
  readonly victims: FileVictims;
  /** Runs a script as the agent. It has to succeed. */
  agent(cmd: string): Promise<string>;
  /** Where the session's files are on the machine. */
  root(): string;
  /** Lets every victim loose on a path: no one fails by itself, and nothing of the canary is told or touched. */
  expectHarmless(victims: Victims, path: string): Promise<Readonly<Record<string, Outcome>>>;
}

export async function openFileRoom(): Promise<FileRoom> {
  const canary = createCanary();
  const host = await startHost();
  const sessionId = "hostile";
  await createSession(host, sessionId);
  return {
    host,
    sessionId,
    canary,
    files: fileClient(host),
    victims: createVictims(host, sessionId),
    agent: (cmd) => script(host, sessionId, cmd),
    root: () => rootBelow(host.home),
    expectHarmless: async (victims, path) => {
      const outcomes: Record<string, Outcome> = {};
      for (const [name, victim] of Object.entries(victims)) {
        const outcome = await victim(path);
        expect([name, path, outcome.text]).not.toContainEqual(expect.stringMatching(/^(INTERNAL|UNKNOWN)/));
        expect([name, path, outcome.text.includes(canary.secret)]).toEqual([name, path, false]);
        outcomes[name] = outcome;
      }
      canary.expectUntouched();
      return outcomes;
    },
    [Symbol.asyncDispose]: async () => {
      await host[Symbol.asyncDispose]();
      canary[Symbol.dispose]();
    },
  };
}

/** The only head that is mounted. */
function rootBelow(home: string): string {
  const heads = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((path) => path.startsWith(`${home}/`) && path.includes("/mnt/"));
  const [head] = heads;
  if (head === undefined || heads.length > 1) throw new Error(`not one head: ${heads.join(" ")}`);
  return head;
}

/** The names of the victims that did what they were asked. */
export function doneOf(outcomes: Readonly<Record<string, Outcome>>): readonly string[] {
  return Object.keys(outcomes).filter((name) => outcomes[name]?.isDone === true);
}
