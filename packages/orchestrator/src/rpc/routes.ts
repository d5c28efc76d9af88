import type { DescFile } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { FleetService, file_turnbox_control_v1_fleet } from "@turnbox/protocol/turnbox/control/v1/fleet_pb";
import {
  file_turnbox_control_v1_sandbox_control,
  SandboxControlService,
} from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { createFleetService, type FleetServiceOptions } from "./fleet-service.ts";
import { createSandboxControlService, type SandboxControlServiceOptions } from "./sandbox-control-service.ts";

/** What reflection shows. */
export const CONTROL_FILES: readonly DescFile[] = [
  file_turnbox_control_v1_sandbox_control,
  file_turnbox_control_v1_fleet,
];

/** The services whose health is shown. */
export const CONTROL_SERVICES: readonly string[] = [SandboxControlService.typeName, FleetService.typeName];

export function createRoutes(
  options: SandboxControlServiceOptions & FleetServiceOptions,
): (router: ConnectRouter) => void {
  return (router) => {
    router.service(SandboxControlService, createSandboxControlService(options));
    router.service(FleetService, createFleetService(options));
  };
}
