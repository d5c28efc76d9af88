import { setFlagsFromString } from "node:v8";

/**
 * Has V8 count buffers to all that the process holds. By itself this release counts what was allocated of them since the last
 * collection to the JavaScript heap, which is small here: it then collects everything for every 15 MiB of a tool's output,
 * which takes a third of the processor time of a stream. Later releases count like this by themselves and do not know the flag.
 *
 * Between collections a process holds a few dozen MiB more.
 */
export function countExternalMemory(): void {
  setFlagsFromString("--external-memory-accounted-in-global-limit");
}
