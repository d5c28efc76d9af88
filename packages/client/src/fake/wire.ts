/** The words of the wire in which the fakes are told what to do, so that their users need not know the protocol. */
export {
  DrainReason,
  DrainSessions,
  FleetEventKind,
  InstanceState,
} from "@turnbox/protocol/turnbox/control/v1/fleet_pb";
export { OnTimeout, SessionEventKind, SessionState, ToolsPolicy } from "@turnbox/protocol/turnbox/host/v1/session_pb";
export { ChangeKind, SnapshotKind, TurnOutcome } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
export { ExitReason } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
