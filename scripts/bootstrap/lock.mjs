import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { identify, isAlive } from "./process-identity.mjs";

const POLL_MS = 200;

const ownerOf = (folder) => {
  try {
    return readFileSync(path.join(folder, "owner"), "utf8");
  } catch {
    return undefined;
  }
};

/** A folder with its owner inside appears under `folder` in one rename, so a lock without an owner is never seen. */
function tryTake(folder, draft) {
  try {
    renameSync(draft, folder);
    return true;
  } catch (cause) {
    if (cause.code === "ENOTEMPTY" || cause.code === "EEXIST" || cause.code === "EPERM") return false;
    throw cause;
  }
}

/** Moves the lock of a dead owner away. When somebody else has taken it meanwhile, theirs is put back. */
function breakStale(folder, deadOwner) {
  const aside = mkdtempSync(`${folder}.stale-`);
  try {
    renameSync(folder, path.join(aside, "lock"));
    if (ownerOf(path.join(aside, "lock")) !== deadOwner) renameSync(path.join(aside, "lock"), folder);
  } catch (cause) {
    if (cause.code !== "ENOENT") throw cause;
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
}

/** Renamed away first: while its content is being removed, nobody may take an emptied folder for a free lock. */
function release(folder, self) {
  if (ownerOf(folder) !== self) return;
  const aside = mkdtempSync(`${folder}.released-`);
  renameSync(folder, path.join(aside, "lock"));
  rmSync(aside, { recursive: true, force: true });
}

/**
 * Takes the lock folder, waiting while another living process has it. The answer releases it, and so does the end of
 * this process; one that is killed leaves a lock that the next one recognises as stale.
 */
export async function takeLock(folder, { print, self = identify(process.pid) }) {
  mkdirSync(path.dirname(folder), { recursive: true });
  const draft = mkdtempSync(`${folder}.draft-`);
  writeFileSync(path.join(draft, "owner"), self);
  const leave = () => {
    process.off("exit", leave);
    rmSync(draft, { recursive: true, force: true });
    release(folder, self);
  };
  process.on("exit", leave);
  let announced;
  while (!tryTake(folder, draft)) {
    const owner = ownerOf(folder);
    if (owner !== undefined && !isAlive(owner)) {
      breakStale(folder, owner);
      continue;
    }
    if (owner !== undefined && announced !== owner) {
      print(`  waiting for another bootstrap in this clone (pid ${owner.split(" ")[0]})`);
      announced = owner;
    }
    await sleep(POLL_MS);
  }
  return leave;
}
