import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTokenSigner, loadOrCreateSigningKeys, openHome, systemClock } from "@turnbox/core";
import { startHost, type TestHost } from "../support/host.ts";
import { createSession, health, script } from "../support/host-calls.ts";
import { poll, REPO, run } from "../support/process.ts";
import { IS_FULL, SLACK } from "../support/random.ts";
import { type Answers, BODY_KINDS, type BodyKind, type Flood } from "../support/request-flood.ts";

const MiB = 1024 * 1024;
/** More than any method takes, and the most that ExecuteTool takes. */
const TOO_LARGE_BYTES = 16 * MiB;
const LARGEST_BYTES = 6 * MiB;
const MAX_SERVICE_BYTES = 600 * MiB;
const MAX_HEALTH_MS = 200;
/** What may be left of a flood when it is over, beside what the service had before. */
const MAX_LEFT_BYTES = 400 * MiB;
const ROUNDS = IS_FULL ? 5 : 1;

let host: TestHost;
let token: string;
beforeAll(async () => {
  host = await startHost();
  await createSession(host, "attacker");
  await createSession(host, "neighbour");
  await script(host, "neighbour", "echo here > file.txt");
  const { privateKey } = loadOrCreateSigningKeys(join(host.home, "keys"));
  const signer = createTokenSigner({ privateKey, issuer: openHome(host.home).id, clock: systemClock });
  const verbs = ["read", "execute", "files"] as const;
  token = signer.sign({ tenant: "default", sandbox: "attacker", verbs, lifetimeMs: 3_600_000 }).token.reveal();
}, 120_000);
afterAll(async () => {
  await host[Symbol.asyncDispose]();
}, 120_000);

function serviceBytes(): number {
  const [, kib] = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${host.pid}/status`, "utf8")) ?? [];
  return Number(kib) * 1024;
}

interface Watched {
  readonly answers: Answers;
  readonly peakBytes: number;
  readonly healthMs: number;
  /** Calls of another sandbox that were answered meanwhile. */
  readonly neighbours: number;
}

type Kind = Pick<Flood, "kinds" | "bytes" | "parallel" | "length">;

/** Sends a flood from another process, and looks at the host meanwhile. */
async function flooded(kind: Kind): Promise<Watched> {
  const asked: Flood = { url: host.url, token, sessionId: "attacker", ...kind };
  const program = join(REPO, "test/support/request-flood.ts");
  let over = false;
  const sending = run(process.execPath, ["--no-warnings", program], { stdin: JSON.stringify(asked) }).finally(() => {
    over = true;
  });
  let peakBytes = 0;
  let neighbours = 0;
  const healthMs: number[] = [];
  const askHealth = async (): Promise<void> => {
    while (!over) {
      const begunMs = performance.now();
      await health(host);
      healthMs.push(performance.now() - begunMs);
      peakBytes = Math.max(peakBytes, serviceBytes());
    }
  };
  const askNeighbour = async (): Promise<void> => {
    while (!over) {
      expect(await script(host, "neighbour", "cat file.txt")).toBe("here\n");
      neighbours += 1;
    }
  };
  await Promise.all([askHealth(), askNeighbour()]);
  const { exitCode, stdout, stderr } = await sending;
  expect([exitCode, stderr]).toEqual([0, ""]);
  healthMs.sort((a, b) => a - b);
  const answers = JSON.parse(stdout) as Answers;
  return { answers, peakBytes, healthMs: healthMs[Math.floor(healthMs.length * 0.99)] ?? 0, neighbours };
}

const MANY: readonly BodyKind[] = IS_FULL ? BODY_KINDS : ["array", "text", "emptyValues", "gzipArray"];
const FLOODS: readonly (readonly [string, Kind])[] = [
  ["8 larger than any method takes", { kinds: BODY_KINDS, bytes: TOO_LARGE_BYTES, parallel: 8, length: "said" }],
  ["8 larger, of unknown length", { kinds: MANY, bytes: TOO_LARGE_BYTES, parallel: 8, length: "unsaid" }],
  ["8 as large as the method takes", { kinds: BODY_KINDS, bytes: LARGEST_BYTES, parallel: 8, length: "said" }],
  ["64 larger than any method takes", { kinds: MANY, bytes: TOO_LARGE_BYTES, parallel: 64, length: "said" }],
  ["64 as large as the method takes", { kinds: MANY, bytes: LARGEST_BYTES, parallel: 64, length: "unsaid" }],
];

describe("requests that are made to take memory, on a real host", () => {
  it.each(FLOODS)(
    "attack 49: %s at once are refused in bounded memory while the host answers",
    async (_name, kind) => {
      const pid = host.pid;
      const beforeBytes = serviceBytes();
      for (let round = 0; round < ROUNDS; round += 1) {
        const seen = await flooded(kind);
        process.stdout.write(
          `${kind.parallel} of ${kind.bytes / MiB} MiB: peak ${Math.round(seen.peakBytes / MiB)} MiB, health p99 ` +
            `${Math.round(seen.healthMs)} ms, ${seen.neighbours} calls of a neighbour, ${JSON.stringify(seen.answers)}\n`,
        );
        expect(host.pid).toBe(pid);
        expect(seen.neighbours).toBeGreaterThan(0);
        expect(seen.peakBytes).toBeLessThan(MAX_SERVICE_BYTES);
        expect(seen.healthMs).toBeLessThan(MAX_HEALTH_MS * SLACK);
        // Only a text of a legal length may be written.
        for (const answer of Object.keys(seen.answers))
          expect(answer).toMatch(/^(\w+ (INVALID_ARGUMENT|OVERLOADED|cut)|(text|gzipText|escapes) 200)$/);
      }
      await poll("the memory to come back", () => (serviceBytes() < beforeBytes + MAX_LEFT_BYTES ? true : undefined));
    },
    IS_FULL ? 900_000 : 60_000,
  );

  it("takes a text of 4 MiB as it did", async () => {
    const content = "line\n".repeat((4 * MiB) / 5);
    const params = { path: "/workspace/long.txt", content };
    await host.call("ToolService/ExecuteTool", {
      sessionId: "neighbour",
      toolCallId: "long",
      toolName: "write_file",
      params,
    });
    expect(await script(host, "neighbour", "wc -c < long.txt")).toBe(`${content.length}\n`);
  }, 60_000);
});
