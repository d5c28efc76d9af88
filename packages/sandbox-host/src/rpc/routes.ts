import type { DescFile } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { file_turnbox_host_v1_file, FileService } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import { file_turnbox_host_v1_host, HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { file_turnbox_host_v1_process, ProcessService } from "@turnbox/protocol/turnbox/host/v1/process_pb";
import { file_turnbox_host_v1_session, SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { file_turnbox_host_v1_snapshot, SnapshotService } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import { file_turnbox_host_v1_tool, ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { createFileService } from "./file-service.ts";
import type { Host } from "./host.ts";
import { createHostService } from "./host-service.ts";
import { createProcessService } from "./process-service.ts";
import { createSessionService } from "./session-service.ts";
import { createSnapshotService } from "./snapshot-service.ts";
import { createToolService } from "./tool-service.ts";

/** What reflection shows. */
export const HOST_FILES: readonly DescFile[] = [
  file_turnbox_host_v1_session,
  file_turnbox_host_v1_tool,
  file_turnbox_host_v1_snapshot,
  file_turnbox_host_v1_process,
  file_turnbox_host_v1_file,
  file_turnbox_host_v1_host,
];

/** All services of the contract. Methods without a handler answer `unimplemented`; docs/UNIMPLEMENTED.md lists them. */
export function createRoutes(host: Host): (router: ConnectRouter) => void {
  return (router) => {
    router.service(SessionService, createSessionService(host));
    router.service(ToolService, createToolService(host));
    router.service(SnapshotService, createSnapshotService(host));
    router.service(HostService, createHostService(host));
    router.service(ProcessService, createProcessService(host));
    router.service(FileService, createFileService(host));
  };
}
