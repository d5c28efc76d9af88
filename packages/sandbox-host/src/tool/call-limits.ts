import { invalidArgument } from "@turnbox/core";
import type { ExecSpec } from "../runtime/runtime.ts";
import { MAX_TOOL_TIMEOUT_MS } from "./bash-tool.ts";

/** Bounds of one call, on top of those of its sandbox. An absent one is the tool's default. */
export interface CallLimits {
  readonly timeoutMs?: number;
  /** Most address space of each process of the call. */
  readonly memoryBytes?: number;
  /** How much of each output the result keeps. */
  readonly outputBytes?: number;
}

const MiB = 1024 * 1024;
/** Less than this, and the shell itself does not start. */
const MIN_MEMORY_BYTES = 16 * MiB;
const MAX_MEMORY_BYTES = 2 ** 48;
const MAX_OUTPUT_BYTES = 4 * MiB;

/** Refuses a limit that is out of range or that the tool's tier cannot enforce, by its name. */
export function checkLimits(limits: CallLimits, tier: 1 | 2): void {
  const fields = [
    { name: "limits.timeout", value: limits.timeoutMs, min: 1, max: MAX_TOOL_TIMEOUT_MS },
    { name: "limits.memory_bytes", value: limits.memoryBytes, min: MIN_MEMORY_BYTES, max: MAX_MEMORY_BYTES },
    { name: "limits.output_bytes", value: limits.outputBytes, min: 1, max: MAX_OUTPUT_BYTES },
  ];
  for (const { name, value, min, max } of fields) {
    if (value === undefined) continue;
    if (tier === 1 && name !== "limits.timeout")
      throw invalidArgument(name, "is enforced only for tools that run code");
    if (value < min || value > max) throw invalidArgument(name, `must be from ${min} to ${max}`);
  }
}

/**
 * The command under its bounds: a shell that sets the address space of what it starts, or runs nothing. The limit is set
 * in a process that was forked: in gVisor all processes that are started from outside share the limits of PID 1, so that a
 * limit which is set there holds for every later call.
 */
export function limitedSpec(spec: ExecSpec, { timeoutMs, memoryBytes }: CallLimits): ExecSpec {
  const deadlineMs = Math.min(spec.deadlineMs, timeoutMs ?? Number.POSITIVE_INFINITY);
  if (memoryBytes === undefined) return { ...spec, deadlineMs };
  const script = `(ulimit -v ${Math.floor(memoryBytes / 1024)} || exit 126; exec "$@"); exit $?`;
  return { ...spec, deadlineMs, argv: ["bash", "-c", script, "bash", ...spec.argv] };
}
