import { SandboxError } from "@turnbox/core";
import type { Session } from "../session/session.ts";
import type { LaunchedProcess } from "./launched-process.ts";
import type { Processes } from "./processes.ts";

/** Writes to the input of a process without a terminal; returns all bytes accepted so far. */
export type WriteInput = (
  session: Session,
  request: { readonly process: LaunchedProcess; readonly offset: number; readonly data: Uint8Array },
  call: { readonly signal: AbortSignal },
) => Promise<number>;

export function createWriteInput({ processes }: { readonly processes: Processes }): WriteInput {
  return async (session, { process, offset, data }, call) => {
    await processes.settle(session, process, call);
    // A process that has ended returns what it had accepted too: its writer may ask again.
    if (process.row.end !== null && offset + data.length > process.input.acceptedBytes)
      throw new SandboxError("INVALID_STATE", "the process has ended and reads no input any more");
    return await process.input.write(offset, data, call);
  };
}
