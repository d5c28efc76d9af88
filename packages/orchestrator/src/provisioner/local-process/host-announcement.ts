import { isReason, SandboxError } from "@turnbox/core";

/** The first line that a sandbox-host writes to its standard output: it is ready, or why it never will be. */
export type HostAnnouncement =
  | {
      readonly kind: "ready";
      readonly url: string;
      readonly pid: number;
      /** Whether it goes on to say once a second that its event loop turns. */
      readonly heartbeat: "given" | "none";
    }
  | { readonly kind: "failed"; readonly error: SandboxError };

/** Reads the line. One that is not of the agreed form is a failure of the host, never a guess. */
export function parseHostAnnouncement(line: string): HostAnnouncement {
  const { event, url, pid, heartbeat, reason, message, remedy } = parseFields(line);
  if (event === "ready" && typeof url === "string" && URL.canParse(url) && Number.isSafeInteger(pid)) {
    return { kind: "ready", url, pid: Number(pid), heartbeat: heartbeat === "given" ? "given" : "none" };
  }
  if (event === "failed" && typeof message === "string") {
    const known = typeof reason === "string" && isReason(reason) ? reason : "HOST_UNREACHABLE";
    const metadata = typeof remedy === "string" && remedy !== "" ? { remedy } : {};
    return { kind: "failed", error: new SandboxError(known, message, { metadata, admitted: "no" }) };
  }
  return {
    kind: "failed",
    error: new SandboxError("HOST_UNREACHABLE", "the host announced itself in a form that is not known", {
      admitted: "no",
    }),
  };
}

function parseFields(line: string): Readonly<Record<string, unknown>> {
  try {
    const json: unknown = JSON.parse(line);
    return typeof json === "object" && json !== null ? (json as Readonly<Record<string, unknown>>) : {};
  } catch {
    return {};
  }
}
