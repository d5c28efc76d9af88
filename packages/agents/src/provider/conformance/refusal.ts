import { SandboxError } from "@turnbox/client";

/** The reason that a call fails with, or `success`. */
export async function refusalOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "success";
  } catch (thrown) {
    return SandboxError.from(thrown).reason;
  }
}
