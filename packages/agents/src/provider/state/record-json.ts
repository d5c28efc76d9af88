import { SandboxError } from "@turnbox/client";
import type { SessionState } from "../provider.ts";
import type { SessionRecord } from "./session-record.ts";

/** Of the shape below. A file of another version is not read: it may mean something else. */
const VERSION = 1;

/** What JSON makes of a record. */
type Dated<T, Keys extends keyof T> = Omit<T, Keys> & Record<Keys, string | null>;
interface RecordJson extends Omit<SessionRecord, "state" | "updatedAt"> {
  readonly state: Dated<SessionState, "sshAccessExpiresAt" | "preparedAt">;
  readonly updatedAt: string;
}

export function formatRecord(record: SessionRecord): string {
  return `${JSON.stringify({ version: VERSION, session: record }, (_, value: unknown) => value ?? null, 2)}\n`;
}

export function parseRecord(text: string, source: string): SessionRecord {
  const { version, session } = parseFile(text, source);
  if (version !== VERSION) throw unreadable(source, `it has version ${String(version)}, and ${VERSION} is known`);
  if (!isRecordJson(session)) throw unreadable(source, "it is not what a session's state looks like");
  const { state } = session;
  return {
    ...session,
    sandbox: { ...session.sandbox, daytona: session.sandbox.daytona ?? undefined },
    state: {
      ...state,
      providerState: state.providerState ?? undefined,
      sshAccessExpiresAt: toDate(state.sshAccessExpiresAt),
      preparedAt: toDate(state.preparedAt),
    },
    updatedAt: new Date(session.updatedAt),
  };
}

function parseFile(text: string, source: string): { readonly version?: unknown; readonly session?: unknown } {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null ? value : {};
  } catch (cause) {
    throw unreadable(source, "it is no JSON", cause);
  }
}

/** The parts that the flow relies on; files are written by this module, whole. */
function isRecordJson(value: unknown): value is RecordJson {
  if (typeof value !== "object" || value === null) return false;
  const { sessionId, status, state, sandbox } = value as Partial<Record<keyof RecordJson, unknown>>;
  const isObject = (one: unknown): one is object => typeof one === "object" && one !== null;
  return (
    typeof sessionId === "string" &&
    typeof status === "string" &&
    isObject(sandbox) &&
    isObject(state) &&
    "sandboxId" in state
  );
}

const toDate = (text: string | null): Date | undefined => (text === null ? undefined : new Date(text));

const unreadable = (source: string, why: string, cause?: unknown): SandboxError =>
  new SandboxError("CONFIG_INVALID", `the session state ${source} cannot be read: ${why}`, {
    cause,
    metadata: { source },
  });
