import { spawn } from "node:child_process";
import { createServer } from "node:http2";
import { join } from "node:path";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { Health, HealthCheckResponse_ServingStatus } from "@turnbox/protocol/health/v1/health_pb";
import { ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";

/**
 * Connect's own server, in a process of its own, which has files read by one worker process. Knows no sessions, tokens,
 * limits, deadlines or failures, and serves one caller. Prints its port; ends when its stdin does.
 */
const worker = spawn(process.execPath, ["--no-warnings", join(import.meta.dirname, "read-worker.ts")], {
  stdio: ["pipe", "pipe", "inherit"],
});
// Its caller is told, who would wait for ever.
worker.on("exit", () => process.exit(1));
let answer: (text: string) => void = () => undefined;
worker.stdout.on("data", (bytes: Buffer) => {
  answer(bytes.toString("utf8"));
});

async function read(path: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  answer = resolve;
  worker.stdin.write(path);
  return await promise;
}

const server = createServer(
  connectNodeAdapter({
    routes: (router) => {
      router.service(Health, { check: () => ({ status: HealthCheckResponse_ServingStatus.SERVING }) });
      router.service(ToolService, {
        executeTool: async ({ toolCallId, params }) => {
          const path = params?.["path"];
          if (typeof path !== "string") throw new TypeError("no path");
          return { toolCallId, content: await read(path) };
        },
      });
    },
  }),
);
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  process.stdout.write(`${String(typeof address === "object" ? address?.port : address)}\n`);
});
process.stdin.on("end", () => process.exit(0)).resume();
