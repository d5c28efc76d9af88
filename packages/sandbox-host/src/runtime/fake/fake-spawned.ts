import { constants, createWriteStream, openSync } from "node:fs";
import { open } from "node:fs/promises";
import { Socket } from "node:net";
import { join } from "node:path";
import { createChildCommandRunner, type RunningCommand } from "@turnbox/core";
import type { ProcessLife, SpawnSpec } from "../runtime.ts";

/** Signals that a process survives unless it says otherwise: CHLD, CONT, STOP, TSTP, URG, WINCH. */
const HARMLESS: ReadonlySet<number> = new Set([17, 18, 19, 20, 23, 28]);

/** A fake process that belongs to the machine, not to an instance of the runtime. */
export interface FakeSpawned {
  readonly command: RunningCommand;
  readonly life: ProcessLife;
  signal(signal: number): Promise<void>;
  endInput(): Promise<void>;
}

/** Connects a fake command to a FIFO and a file, as a sandbox does with a real one. */
export async function createFakeSpawned(command: RunningCommand, spec: SpawnSpec): Promise<FakeSpawned> {
  const inputPath = join(spec.directory, "input");
  await createChildCommandRunner().run({ command: "mkfifo", args: [inputPath], deadlineMs: 10_000 });
  // Held for both directions, so that the input does not end with a writer.
  const holder = await open(inputPath, constants.O_RDWR | constants.O_NONBLOCK);
  const input = new Socket({ fd: openSync(inputPath, constants.O_RDONLY | constants.O_NONBLOCK), readable: true });
  input.on("error", () => undefined);
  // A process that is left running must not keep the test's process up.
  input.unref();
  input.pipe(command.stdin);
  // It is there as soon as the process is.
  const output = createWriteStream("", { fd: openSync(spec.outputPath, "a") });
  output.on("error", () => undefined);
  command.stdout.pipe(output, { end: false });
  command.stderr.pipe(output, { end: false });
  let life: ProcessLife = { kind: "running" };
  let killedBy = 9;
  let isHeld = true;
  const endInput = async (): Promise<void> => {
    if (!isHeld) return;
    isHeld = false;
    await holder.close();
  };
  const written = command.exit.then(
    async () =>
      await new Promise<void>((resolve) => {
        output.end(resolve);
      }),
  );
  void Promise.all([command.ended, written]).then(async ([exit]) => {
    life = exit.kind === "exited" ? exit : { kind: "signaled", signal: killedBy };
    input.destroy();
    await endInput();
  });
  return {
    command,
    get life() {
      return life;
    },
    signal: async (signal) => {
      if (HARMLESS.has(signal) || life.kind !== "running") return;
      killedBy = signal;
      command.kill();
      await command.ended;
    },
    endInput,
  };
}
