import { IS_FULL } from "./random.ts";

/**
 * The backends of hosts in tests that are about several of them and not about what is in them: ones that cost nothing,
 * and in the whole form those of every other test, ZFS and gVisor.
 */
export const FLEET_BACKENDS: Readonly<Record<string, string>> = IS_FULL
  ? {}
  : { TURNBOX_STORAGE_BACKEND: "local-disk", TURNBOX_CONTAINER_RUNTIME: "none" };
