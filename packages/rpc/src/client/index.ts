export { ConnectionManager, type ConnectionTimes } from "./connection-manager.ts";
export { createHttp2Transport, type Http2TransportOptions } from "./transport.ts";
