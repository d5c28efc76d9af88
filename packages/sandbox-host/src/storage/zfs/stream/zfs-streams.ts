import type { Readable } from "node:stream";
import { checkGuid, checkMarks, checkSnapshot, checkToken, baseNotFound, snapshotNotFound } from "../../names.ts";
import type { BaseRef, SnapshotRef, StorageCall } from "../../storage.ts";
import type {
  ChainLink,
  ReceivedSession,
  ReceivedSnapshot,
  StreamFormat,
  StreamParent,
  Streams,
} from "../../streams.ts";
import { shortName } from "../layout.ts";
import { createSessionDataset } from "../sessions.ts";
import type { ZfsPool } from "../zfs-pool.ts";
import { readChain } from "./chain.ts";
import { readPoints } from "./points.ts";
import { findBases, receiveBase } from "./received-bases.ts";
import { receive } from "./receiving.ts";
import { startSending } from "./sending.ts";

type Work<T> = (pool: ZfsPool, call: StorageCall) => Promise<T>;

export interface ZfsStreamsOptions {
  readonly run: <T>(call: StorageCall, work: Work<T>) => Promise<T>;
  /** The same, while nothing else changes in the session. */
  readonly runForSession: <T>(token: string, call: StorageCall, work: Work<T>) => Promise<T>;
  /** The same for a base. */
  readonly runForBase: <T>(base: BaseRef, call: StorageCall, work: Work<T>) => Promise<T>;
  /** One at a time under each key. */
  readonly runKeyed: <T>(key: string, call: StorageCall, work: Work<T>) => Promise<T>;
}

/** A snapshot in the pool that stays until the lease is disposed of. */
interface Leased extends Disposable {
  readonly name: string;
  readonly guid: string;
}

/** Streams of `zfs send`, in frames. */
export class ZfsStreams implements Streams {
  readonly writes: StreamFormat = "zfs";
  readonly reads: readonly StreamFormat[] = ["zfs"];
  readonly #options: ZfsStreamsOptions;

  constructor(options: ZfsStreamsOptions) {
    this.#options = options;
  }

  async chain(token: string, call: StorageCall): Promise<readonly ChainLink[]> {
    return await this.#options.runForSession(token, call, (pool, inner) => readChain(pool, token, inner));
  }

  async send(snapshot: SnapshotRef, parent: StreamParent | null, call: StorageCall): Promise<Readable> {
    checkSnapshot(snapshot);
    using leases = new DisposableStack();
    const sent = leases.use(await this.#leaseSnapshot(snapshot, undefined, call));
    const from = parent === null ? undefined : leases.use(await this.#leaseParent(parent, call));
    return await this.#start({ snapshot: sent.name, parent: from?.name, leases: leases.move() }, call);
  }

  async sendBase(
    base: BaseRef & { readonly guid?: string },
    call: StorageCall,
  ): Promise<{ readonly guid: string; readonly stream: Readable }> {
    using leases = new DisposableStack();
    const { name, guid } = leases.use(await this.#leaseBase(base, base.guid, call));
    return { guid, stream: await this.#start({ snapshot: name, parent: undefined, leases: leases.move() }, call) };
  }

  async baseGuid(base: BaseRef, call: StorageCall): Promise<string | undefined> {
    const [found] = await this.#options.run(call, (pool, { signal }) => findBases(pool, signal, base));
    return found?.guid;
  }

  async hasBase(base: BaseRef, guid: string, call: StorageCall): Promise<boolean> {
    checkGuid(guid);
    const found = await this.#options.run(call, (pool, { signal }) => findBases(pool, signal, base));
    return found.some((one) => one.guid === guid);
  }

  async receiveBase(base: BaseRef, guid: string, stream: Readable, call: StorageCall): Promise<void> {
    await owning(stream, () =>
      this.#options.runKeyed(`received ${base.name}`, call, (pool, inner) =>
        receiveBase(pool, { base, guid }, { ...inner, source: stream }),
      ),
    );
  }

  async beginSession(session: ReceivedSession, call: StorageCall): Promise<void> {
    const { token, marks, refquotaBytes = session.quotaBytes } = session;
    checkToken(token);
    checkMarks(marks);
    await this.#options.runForSession(token, call, (pool, { signal }) =>
      createSessionDataset(pool, { token, marks, refquotaBytes }, signal),
    );
  }

  async receive(snapshot: ReceivedSnapshot, stream: Readable, call: StorageCall): Promise<void> {
    await owning(stream, () =>
      this.#options.runForSession(snapshot.token, call, (pool, inner) =>
        receive(pool, snapshot, { ...inner, source: stream }),
      ),
    );
  }

  /** The leases go when the sender has ended, for whatever reason. */
  async #start(
    sent: { readonly snapshot: string; readonly parent: string | undefined; readonly leases: DisposableStack },
    call: StorageCall,
  ): Promise<Readable> {
    const begun = Promise.withResolvers<Readable>();
    const work = async (pool: ZfsPool, { signal }: StorageCall): Promise<void> => {
      const sending = await startSending(pool, sent, signal);
      begun.resolve(sending.stream);
      await sending.over;
    };
    this.#options
      .run(call, work)
      .catch(begun.reject)
      .finally(() => {
        sent.leases.dispose();
      });
    return await begun.promise;
  }

  async #leaseParent(parent: StreamParent, call: StorageCall): Promise<Leased> {
    checkGuid(parent.guid);
    return parent.of.kind === "base"
      ? await this.#leaseBase(parent.of.base, parent.guid, call)
      : await this.#leaseSnapshot(parent.of.snapshot, parent.guid, call);
  }

  /** In the session's turn: nothing destroys or moves the snapshot between the look and the lease. */
  async #leaseSnapshot(ref: SnapshotRef, guid: string | undefined, call: StorageCall): Promise<Leased> {
    checkSnapshot(ref);
    return await this.#options.runForSession(ref.token, call, async (pool, { signal }) => {
      const points = await readPoints(pool, pool.layout.session(ref.token), signal);
      const found = points.find(({ name, isOurs }) => isOurs && name.includes("@") && shortName(name) === ref.name);
      if (found === undefined || (guid !== undefined && found.guid !== guid)) throw snapshotNotFound();
      return { name: found.name, guid: found.guid, ...pool.leases.take(found.name) };
    });
  }

  async #leaseBase(base: BaseRef, guid: string | undefined, call: StorageCall): Promise<Leased> {
    return await this.#options.runForBase(base, call, async (pool, { signal }) => {
      const found = (await findBases(pool, signal, base)).find((one) => guid === undefined || one.guid === guid);
      if (found === undefined) throw baseNotFound(base);
      return { name: found.snapshot, guid: found.guid, ...pool.leases.take(found.snapshot) };
    });
  }
}

/** The stream ends with the call, also if the call never came to read it. */
async function owning(stream: Readable, work: () => Promise<void>): Promise<void> {
  // What it fails with reaches the caller by the work.
  stream.on("error", () => undefined);
  try {
    await work();
  } finally {
    stream.destroy();
  }
}
