export { SandboxError } from "@turnbox/core";
export { type ConnectOptions, connectHost, connectTurnbox, type HostClients, type TurnboxClients } from "./client.ts";
export type { Connection, ConnectionFactory, Endpoint } from "./connection.ts";
