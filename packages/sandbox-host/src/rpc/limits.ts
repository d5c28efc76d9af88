import { invalidArgument } from "@turnbox/core";
import type { ResourceSpec } from "@turnbox/protocol/turnbox/common/v1/resource_pb";
import type { ContainerLimits } from "../runtime/runtime.ts";
import { parseSize } from "./validate.ts";

const CPUS = { min: 0.01, max: 1024 };
const MIN_MEMORY_BYTES = 64 * 1024 * 1024;
const MIN_PIDS = 16;

/** The limits that a request names; 0 names none. Less than a sandbox needs to live is refused. */
export function parseLimits(resources: ResourceSpec | undefined): ContainerLimits {
  if (resources === undefined) return {};
  const { cpus, pids } = resources;
  const memoryBytes = parseSize("resources.memory_bytes", resources.memoryBytes);
  if (cpus !== 0 && !(cpus >= CPUS.min && cpus <= CPUS.max)) {
    throw invalidArgument("resources.cpus", `must be 0 or from ${CPUS.min} to ${CPUS.max}`);
  }
  if (memoryBytes !== 0 && memoryBytes < MIN_MEMORY_BYTES) {
    throw invalidArgument("resources.memory_bytes", `must be 0 or at least ${MIN_MEMORY_BYTES}`);
  }
  if (pids !== 0 && pids < MIN_PIDS) throw invalidArgument("resources.pids", `must be 0 or at least ${MIN_PIDS}`);
  return {
    ...(cpus === 0 ? {} : { cpus }),
    ...(memoryBytes === 0 ? {} : { memoryBytes }),
    ...(pids === 0 ? {} : { pids }),
  };
}
