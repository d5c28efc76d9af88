import type { Clock } from "@turnbox/core";
import type { Receipts } from "../session/receipts.ts";
import type { Session } from "../session/session.ts";
import type { Uploads } from "../session/uploads.ts";
import type { ChangeFiles } from "./change-files.ts";
import type { OperationName, OutputOf } from "./file-operations.ts";
import type { SessionFiles } from "./session-files.ts";
import { sentInTime } from "./stall.ts";
import type { FileJob } from "./workers.ts";

/** The conditions of a keyed change. */
export interface KeyedChange {
  /** The name of the caller's method, for the scope of the key and for refusals. */
  readonly operation: string;
  readonly key: string;
  /** The request without its body in a canonical form. */
  readonly payload: string;
  readonly expectedGeneration: number | undefined;
  readonly signal: AbortSignal;
}

/** An upload takes as long as its client sends. */
const UPLOAD_MS = 3_600_000;

/** Changes of a session's files, each done once for its key, in the session's gate. */
export class KeyedChanges {
  readonly #receipts: Pick<Receipts, "onceApart">;
  readonly #uploads: Uploads;
  readonly #changeFiles: ChangeFiles;
  readonly #files: SessionFiles;
  readonly #clock: Clock;

  constructor(deps: {
    readonly receipts: Pick<Receipts, "onceApart">;
    readonly uploads: Uploads;
    readonly changeFiles: ChangeFiles;
    readonly files: SessionFiles;
    readonly clock: Clock;
  }) {
    this.#receipts = deps.receipts;
    this.#uploads = deps.uploads;
    this.#changeFiles = deps.changeFiles;
    this.#files = deps.files;
    this.#clock = deps.clock;
  }

  /** A change without a body. */
  async run<Name extends OperationName>(
    session: Session,
    name: Name,
    change: KeyedChange,
    job: Pick<FileJob<Name>, "input" | "deadlineMs" | "lane">,
  ): Promise<OutputOf<Name>> {
    return await this.#receipts.onceApart(
      { scope: scopeOf(session, change), key: change.key, payload: change.payload },
      async () =>
        (await this.#changeFiles(session, change, (call) =>
          this.#files.run(session, name, job, call),
        )) as OutputOf<Name>,
    );
  }

  /** A change whose body the client streams; it ends with the client. */
  async upload<Name extends OperationName>(
    session: Session,
    name: Name,
    change: KeyedChange & { readonly body: AsyncIterable<Uint8Array> },
    input: FileJob<Name>["input"],
  ): Promise<OutputOf<Name>> {
    const { key, payload, body } = change;
    const keyed = { scope: scopeOf(session, change), key, payload, body, bodyName: "body" } as const;
    const { result } = await this.#uploads.once(keyed, async (pieces) => ({
      result: await this.#changeFiles(session, change, async (call): Promise<OutputOf<Name>> => {
        const job = { input, body: sentInTime(pieces, this.#clock), deadlineMs: UPLOAD_MS, lane: "transfer" } as const;
        const written = session.dirtyFlag.beginWrite();
        using run = await this.#files.stream(session, name, job, call);
        for (let piece = await run.next(); piece !== null; piece = await run.next());
        // An archive may be empty, while a file that is written whole is always a new one.
        if (name === "writeFile") written();
        return run.output;
      }),
    }));
    return result;
  }
}

function scopeOf(session: Session, { operation }: KeyedChange): string {
  return `${session.row.token}/${operation}`;
}
