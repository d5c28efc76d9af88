import { expect, it } from "@jest/globals";
import type { Logger } from "pino";
import type { Denial } from "../network/network.ts";
import { createDenialLog } from "./denial-log.ts";

const CALL = { signal: new AbortController().signal };

function createPlace(sessions: number) {
  const denials = new Map<string, readonly Denial[]>();
  const lines: string[] = [];
  const asked: string[] = [];
  const all = Array.from({ length: sessions }, (_, index) => ({ row: { id: `s${index}`, container: `c${index}` } }));
  const warn = ({ sessionId, destination, rule }: Record<string, string>): void =>
    void lines.push(`${sessionId} ${destination} ${rule}`);
  const look = createDenialLog({
    network: {
      isAttached: () => true,
      denials: (container) => {
        asked.push(container);
        return Promise.resolve(denials.get(container) ?? []);
      },
    },
    registry: { all: () => all as never },
    log: { warn } as unknown as Logger,
  });
  return { denials, lines, asked, look };
}

const denial = (destination: string, atMs: number): Denial => ({ destination, atMs, rule: "default" });

it("writes each refusal once, and again when it happens again", async () => {
  const { denials, lines, look } = createPlace(2);
  denials.set("c1", [denial("10.0.0.1:80/tcp", 50_000), denial("a.example", 40_000)]);
  await look(CALL);
  expect(lines).toEqual(["s1 10.0.0.1:80/tcp default", "s1 a.example default"]);
  // Read again, its time is a second off.
  denials.set("c1", [denial("10.0.0.1:80/tcp", 51_000), denial("a.example", 40_000)]);
  await look(CALL);
  expect(lines).toHaveLength(2);
  denials.set("c1", [denial("a.example", 90_000), denial("10.0.0.1:80/tcp", 51_000)]);
  await look(CALL);
  expect(lines.slice(2)).toEqual(["s1 a.example default"]);
});

it("looks at a bounded number of sessions in a round, and at each in its turn", async () => {
  const { asked, look } = createPlace(40);
  await look(CALL);
  expect(asked).toHaveLength(16);
  await look(CALL);
  await look(CALL);
  expect(new Set(asked).size).toBe(40);
  await look(CALL);
  expect(asked.slice(40)).toEqual(asked.slice(0, 16));
});
