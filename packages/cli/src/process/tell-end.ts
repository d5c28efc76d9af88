import type { SandboxProcess } from "@turnbox/client";
import type { Invocation } from "../invocation.ts";
import type { OutputOptions } from "../option.ts";
import type { AttachmentEnd } from "./attach-process.ts";
import { describeLoss, processExitCode } from "./process-view.ts";

/** Passes a process's exit code on, and says on stderr what it does not say. */
export async function tellEnd(
  end: AttachmentEnd,
  { id, process, options }: { readonly id: string; readonly process: SandboxProcess; readonly options: OutputOptions },
  invocation: Invocation,
): Promise<void> {
  const output = invocation.output(options);
  if (end === "detached") {
    await output.note(`${process.id} goes on; come back with: turnbox attach ${id} ${process.id}`);
    return;
  }
  const loss = describeLoss(end);
  if (loss !== undefined) await output.note(`turnbox: ${end.id} ended: ${loss}`);
  invocation.exitWith(processExitCode(end));
}
