import type { DescFile } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { file_turnbox_host_v1_file, FileService } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import { file_turnbox_host_v1_host, HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { file_turnbox_host_v1_process, ProcessService } from "@turnbox/protocol/turnbox/host/v1/process_pb";
import { file_turnbox_host_v1_session, SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { file_turnbox_host_v1_snapshot, SnapshotService } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import { file_turnbox_host_v1_tool, ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { createFileService, type FileServiceParts } from "./file-service.ts";
import { createHostService, type HostServiceParts } from "./host-service.ts";
import { createProcessService, type ProcessServiceParts } from "./process-service.ts";
import { createSessionService, type SessionServiceParts } from "./session-service.ts";
import { createSnapshotService, type SnapshotServiceParts } from "./snapshot-service.ts";
import { createToolService, type ToolServiceParts } from "./tool-service.ts";

/** What reflection shows. */
export const HOST_FILES: readonly DescFile[] = [
  file_turnbox_host_v1_session,
  file_turnbox_host_v1_tool,
  file_turnbox_host_v1_snapshot,
  file_turnbox_host_v1_process,
  file_turnbox_host_v1_file,
  file_turnbox_host_v1_host,
];

/** What all services need together; each says by itself what it needs of it. */
export type ServiceParts = SessionServiceParts &
  ToolServiceParts &
  SnapshotServiceParts &
  HostServiceParts &
  ProcessServiceParts &
  FileServiceParts;

/** All services of the contract. Methods without a handler return `unimplemented`; docs/UNIMPLEMENTED.md lists them. */
export function createRoutes(host: ServiceParts): (router: ConnectRouter) => void {
  return (router) => {
    router.service(SessionService, createSessionService(host));
    router.service(ToolService, createToolService(host));
    router.service(SnapshotService, createSnapshotService(host));
    router.service(HostService, createHostService(host));
    router.service(ProcessService, createProcessService(host));
    router.service(FileService, createFileService(host));
  };
}
