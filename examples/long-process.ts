// A long process with reconnect: it runs on while nobody is connected, and its output is read on from an offset.
import { type SandboxProcess, Turnbox } from "@turnbox/client";

interface Saved {
  readonly sandboxId: string;
  readonly processId: string;
  readonly offset: number;
}

const TICKS = "n=0; while :; do n=$((n + 1)); echo tick $n; sleep 0.1; done";

/** Prints some lines, and answers with the offset of the next one. */
async function printLines(process: SandboxProcess, options: { from: number; count: number }): Promise<number> {
  let offset = options.from;
  let left = options.count;
  for await (const line of process.lines({ from: offset })) {
    console.log(line);
    offset += Buffer.byteLength(`${line}\n`);
    left -= 1;
    if (left === 0) break;
  }
  return offset;
}

async function begin(): Promise<Saved> {
  using turnbox = Turnbox.connect();
  // Not `await using`: the sandbox is to outlive this connection.
  const sandbox = await turnbox.create({ ttlMs: 3_600_000, onTimeout: "destroy" });
  const process = await sandbox.processes.launch("sh", { args: ["-c", TICKS] });
  const offset = await printLines(process, { from: 0, count: 3 });
  return { sandboxId: sandbox.id, processId: process.id, offset };
}

async function goOn({ sandboxId, processId, offset }: Saved): Promise<void> {
  using turnbox = Turnbox.connect();
  const sandbox = await turnbox.get(sandboxId);
  const process = await sandbox.processes.get(processId);
  await printLines(process, { from: offset, count: 3 });
  await process.kill("SIGTERM");
  const { exitReason, exitSignal } = await process.wait();
  console.log(`the process has ended: ${exitReason ?? "?"} by ${exitSignal ?? "?"}`);
  await sandbox.destroy();
}

const saved = await begin();
console.log(`disconnected at byte ${saved.offset}; nothing is lost meanwhile`);
await goOn(JSON.parse(JSON.stringify(saved)) as Saved);
