import { Admission, HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { SnapshotService } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import { startTestHost, type TestHost } from "../compose.suite.ts";
import { accessTo, type HostAccess } from "./client.suite.ts";

/** The header that names the epoch of a command. */
export const epoch = (value: number | string) => ({ headers: { "turnbox-fleet-epoch": String(value) } });
export const OPEN = { admission: Admission.OPEN };
export const CLOSED = { admission: Admission.CLOSED };

/** A host as its fleet uses it. Disposing it stops the host that runs last. */
export class FleetRig implements AsyncDisposable {
  started: TestHost;
  access: HostAccess;

  private constructor(started: TestHost) {
    this.started = started;
    this.access = accessTo(started.host);
  }

  static async start(): Promise<FleetRig> {
    return new FleetRig(await startTestHost());
  }

  get hosts() {
    return this.access.client(HostService);
  }

  get sessions() {
    return this.access.client(SessionService);
  }

  get snapshots() {
    return this.access.client(SnapshotService);
  }

  async restart(): Promise<void> {
    this.started = await this.started.restart();
    this.access = accessTo(this.started.host);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.started[Symbol.asyncDispose]();
  }
}
