import { once } from "node:events";
import {
  Server,
  ServerCredentials,
  type sendUnaryData,
  type ServerUnaryCall,
  type ServerWritableStream,
} from "@grpc/grpc-js";
import { BARE_SERVICE, MESSAGE_BYTES } from "./grpc-contract.ts";

/** A grpc-js server in a process of its own. Prints its port; ends when its stdin does. */
const MESSAGE = Buffer.alloc(MESSAGE_BYTES);

async function send(call: ServerWritableStream<Buffer, Buffer>): Promise<void> {
  const messages = call.request.readUInt32BE(0);
  for (let index = 0; index < messages; index += 1) {
    if (!call.write(MESSAGE)) await once(call, "drain");
  }
  call.end();
}

const server = new Server();
server.addService(BARE_SERVICE, {
  empty: (_call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) => {
    answer(null, Buffer.alloc(0));
  },
  stream: (call: ServerWritableStream<Buffer, Buffer>) => {
    send(call).catch((thrown: unknown) => call.destroy(thrown instanceof Error ? thrown : new Error(String(thrown))));
  },
});
server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (failure, port) => {
  if (failure !== null) throw failure;
  process.stdout.write(`${String(port)}\n`);
});
process.stdin.on("end", () => process.exit(0)).resume();
