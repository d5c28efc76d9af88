import type { Client } from "@connectrpc/connect";
import { SandboxError } from "@turnbox/core";
import { Admission, type HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { type SessionService, ToolsPolicy } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type { HostConnection, HostSession } from "../control/host-connection.ts";
import { fromSession } from "./convert.ts";
import type { CallHost } from "./host-call.ts";

export interface HostCommandsOptions {
  readonly call: CallHost;
  readonly host: Client<typeof HostService>;
  readonly sessions: Client<typeof SessionService>;
  readonly readMs: number;
  /** Of a command; one that waits for tools or for creates takes longer than others. */
  readonly commandMs: number;
}

const PAGE_SIZE = 1000;

/** What the fleet itself asks of a host, for all tenants. */
export function createHostCommands(
  options: HostCommandsOptions,
): Pick<HostConnection, "sessions" | "setAdmission" | "pauseSession"> {
  const { call, host, sessions, readMs, commandMs } = options;
  const caller = { kind: "fleet" } as const;
  return {
    sessions: async ({ signal }) => {
      const found: HostSession[] = [];
      let pageToken = "";
      do {
        const page = { pageSize: PAGE_SIZE, pageToken };
        const answer = await call({ signal, caller, effect: "none", timeoutMs: readMs }, (over) =>
          sessions.listSessions({ page }, over),
        );
        for (const one of answer.sessions) {
          const { sessionId, state } = fromSession(one);
          found.push({ sessionId, state, tenant: one.tenant });
        }
        pageToken = answer.page?.nextPageToken ?? "";
      } while (pageToken !== "");
      return found;
    },
    setAdmission: async (admission, { signal, epoch }) => {
      const request = { admission: admission === "open" ? Admission.OPEN : Admission.CLOSED };
      await call({ signal, caller, effect: "some", timeoutMs: commandMs, epoch }, (over) =>
        host.setAdmission(request, over),
      );
    },
    pauseSession: async ({ sessionId }, { signal, epoch }) => {
      const request = { sessionId, tools: ToolsPolicy.KILL };
      try {
        await call({ signal, caller, effect: "some", timeoutMs: commandMs, epoch }, (over) =>
          sessions.pauseSession(request, over),
        );
      } catch (error) {
        if (!hasNothingToPause(error)) throw error;
      }
    },
  };
}

/** A session that is gone, being removed or failed runs nothing. */
function hasNothingToPause(thrown: unknown): boolean {
  const { reason, metadata } = SandboxError.from(thrown);
  if (reason === "SANDBOX_NOT_FOUND" || reason === "SESSION_DESTROYING") return true;
  return reason === "INVALID_STATE" && metadata["state"] === "failed";
}
