import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { FleetService } from "@turnbox/protocol/turnbox/control/v1/fleet_pb";
import { SandboxControlService } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { FileService } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import { HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { ProcessService } from "@turnbox/protocol/turnbox/host/v1/process_pb";
import { SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { SnapshotService } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import { ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";

const methodsOf = (...services: readonly DescService[]): readonly DescMethod[] =>
  services.flatMap(({ methods }) => methods);

/** What a sandbox-host serves. `test/house` compares both lists with the protos. */
export const HOST_METHODS = methodsOf(
  SessionService,
  ToolService,
  SnapshotService,
  ProcessService,
  FileService,
  HostService,
);

/** What an orchestrator serves. */
export const CONTROL_METHODS = methodsOf(SandboxControlService, FleetService);

/** `ToolService/ExecuteTool`. */
export const nameOf = ({ parent, name }: DescMethod): string => `${parent.name}/${name}`;

export const pathOf = ({ parent, name }: DescMethod): string => `/${parent.typeName}/${name}`;

/** Only the methods whose name holds TURNBOX_FUZZ_METHOD, for a replay. */
export function wantedOf(methods: readonly DescMethod[]): readonly DescMethod[] {
  const wanted = process.env["TURNBOX_FUZZ_METHOD"] ?? "";
  return methods.filter((method) => nameOf(method).includes(wanted));
}
