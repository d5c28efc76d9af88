/** The protocol's SDK, loaded when the first agent is connected: most programs that use the client never do. */
export type Acp = typeof import("@agentclientprotocol/sdk");
