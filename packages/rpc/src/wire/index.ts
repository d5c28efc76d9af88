export { fromConnectError, toConnectError } from "./connect-error.ts";
