export { type DatabaseErrors, DatabaseThread, type DatabaseThreadOptions } from "./database-thread.ts";
export type { ThreadFailure } from "./message.ts";
export { type Durability, type ServedDatabase, serveDatabase } from "./serve-database.ts";
