import { BareGrpc } from "../floor/bare-grpc.ts";
import type { Row } from "../row.ts";

const MIB = 1024 * 1024;
const IN_FLIGHT = 32;

const perSecond = (amount: number, startedMs: number): number => (amount * 1000) / (performance.now() - startedMs);

const stream: Row = {
  id: "stream.output",
  title: "256 MiB of a command's output, to the client",
  unit: "MiB/s",
  server: "cold",
  floor: "grpc-js stream of 64 KiB messages",
  bar: { kind: "at_least_ratio", value: 0.5 },
  measure: async (bench) => {
    using grpc = await BareGrpc.open();
    await using sandbox = await bench.server().turnbox.create();
    const mib = bench.count(256, 32);
    const read = async (): Promise<number> => {
      const startedMs = performance.now();
      const output = sandbox.bashStream(`dd if=/dev/zero bs=128k count=${String(mib * 8)} 2>/dev/null`);
      let received = 0;
      for await (const { data, stream: of } of output) received += of === "stdout" ? data.length : 0;
      if (received !== mib * MIB) throw new Error(`${received} of ${mib * MIB} bytes came`);
      return perSecond(mib, startedMs);
    };
    const ours: number[] = [];
    const floor: number[] = [];
    for (let round = bench.count(7, 2); round > 0; round -= 1) {
      bench.signal.throwIfAborted();
      ours.push(await read());
      const startedMs = performance.now();
      await grpc.stream(mib * MIB);
      floor.push(perSecond(mib, startedMs));
    }
    return { ours, floor };
  },
};

/** Calls per second with a fixed number of them under way. */
async function rate(call: () => Promise<unknown>, calls: number): Promise<number> {
  const startedMs = performance.now();
  let left = calls;
  const lane = async (): Promise<void> => {
    for (; left > 0; left -= 1) await call();
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
  return perSecond(calls, startedMs);
}

const throughput: Row = {
  id: "rpc.throughput",
  title: "empty unary calls to the host, 32 under way",
  unit: "calls/s",
  server: "cold",
  floor: "empty unary calls of grpc-js, 32 under way",
  measure: async (bench) => {
    using grpc = await BareGrpc.open();
    const health = bench.server().health();
    const calls = bench.count(5000, 500);
    const ours: number[] = [];
    const floor: number[] = [];
    await rate(() => health.check({}), 500);
    await rate(() => grpc.empty(), 500);
    for (let round = bench.count(10, 2); round > 0; round -= 1) {
      bench.signal.throwIfAborted();
      ours.push(await rate(() => health.check({}), calls));
      floor.push(await rate(() => grpc.empty(), calls));
    }
    return { ours, floor };
  },
};

export const RPC_ROWS = [stream, throughput] as const;
