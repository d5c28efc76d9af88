export { Http2Lines, type Http2Times } from "./http2-lines.ts";
export { createLineTransport, type LineTransportOptions } from "./line-transport.ts";
