import { type Client, createClient } from "@connectrpc/connect";
import { FleetService } from "@turnbox/protocol/turnbox/control/v1/fleet_pb";
import { SandboxControlService } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { FileService } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import { HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { ProcessService } from "@turnbox/protocol/turnbox/host/v1/process_pb";
import { SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { SnapshotService } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import { ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { type ConnectionFactory, createHttp2Connection, type Endpoint } from "./connection.ts";

/**
 * Typed clients of an orchestrator over one connection. Every call takes a `signal` in its options, streams too, and
 * fails with `SandboxError` only. The owner closes or disposes of it; calls in flight then fail.
 */
export interface TurnboxClients extends Disposable {
  readonly endpoint: Endpoint;
  readonly sandboxes: Client<typeof SandboxControlService>;
  readonly fleet: Client<typeof FleetService>;
  readonly close: () => void;
}

/** Typed clients of one sandbox-host, reached with what ConnectSandbox gave. The same rules as `TurnboxClients`. */
export interface HostClients extends Disposable {
  readonly endpoint: Endpoint;
  readonly sessions: Client<typeof SessionService>;
  readonly tools: Client<typeof ToolService>;
  readonly snapshots: Client<typeof SnapshotService>;
  readonly processes: Client<typeof ProcessService>;
  readonly files: Client<typeof FileService>;
  readonly host: Client<typeof HostService>;
  readonly close: () => void;
}

/** Where a service is, and how the connection to it is made. */
export interface ConnectOptions extends Endpoint {
  /** How the connection is made; HTTP/2 unless given. */
  readonly connect?: ConnectionFactory;
}

/** Clients of the orchestrator at `url`. Nothing is sent before the first call. */
export function connectTurnbox({ url, token, connect = createHttp2Connection }: ConnectOptions): TurnboxClients {
  const { transport, close } = connect({ url, token }, "server");
  return {
    endpoint: { url, token },
    sandboxes: createClient(SandboxControlService, transport),
    fleet: createClient(FleetService, transport),
    close,
    [Symbol.dispose]: close,
  };
}

/** Clients of the sandbox-host at `url`. Nothing is sent before the first call. */
export function connectHost({ url, token, connect = createHttp2Connection }: ConnectOptions): HostClients {
  const { transport, close } = connect({ url, token }, "host");
  return {
    endpoint: { url, token },
    sessions: createClient(SessionService, transport),
    tools: createClient(ToolService, transport),
    snapshots: createClient(SnapshotService, transport),
    processes: createClient(ProcessService, transport),
    files: createClient(FileService, transport),
    host: createClient(HostService, transport),
    close,
    [Symbol.dispose]: close,
  };
}
