import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { chooseOffer, deriveBackports, parsePolicy, parseSources } from "./apt-sources.mjs";
import { runCommand } from "./command.mjs";
import { withoutServiceStarts } from "./service-policy.mjs";

const BACKPORTS_FILE = "/etc/apt/sources.list.d/turnbox-backports.sources";
const LOCK_TIMEOUT_S = 300;
const LOCK_POLL_MS = 3000;

// --no-remove: a package that is in the way of ours (zfsutils-linux, the dynamic busybox) is the user's to give up.
const INSTALL = ["apt-get", "install", "-y", "--no-install-recommends", "--no-remove"];
const LOCK = ["-o", `DPkg::Lock::Timeout=${LOCK_TIMEOUT_S}`];

const isLocked = ({ code, tail }) => code !== 0 && /Could not get lock|Unable to lock/.test(tail);

/** apt waits for dpkg's lock by itself, not for the one of the package lists. */
async function runApt(argv, env) {
  const deadlineMs = performance.now() + LOCK_TIMEOUT_S * 1000;
  for (;;) {
    const result = await runCommand(argv, { env, timeoutMs: 1_800_000 });
    if (!isLocked(result) || performance.now() > deadlineMs) return result;
    await sleep(LOCK_POLL_MS);
  }
}

/** The files that apt reads its sources from. */
export function readSourceFiles(folder = "/etc/apt") {
  const list = path.join(folder, "sources.list.d");
  const parts = existsSync(list) ? readdirSync(list).map((name) => path.join(list, name)) : [];
  return [path.join(folder, "sources.list"), ...parts]
    .filter((file) => existsSync(file))
    .map((file) => ({ name: file, text: readFileSync(file, "utf8") }));
}

async function findOffer(part, env) {
  const { stdout } = await runCommand(["apt-cache", "policy", part.package], { env, timeoutMs: 60_000 });
  const { pattern } = part.version;
  return chooseOffer({ policy: parsePolicy(stdout), pattern, minimumVersion: part.minimumVersion });
}

/** Adds the backports of the machine's release when no configured source has the part, and takes them back when that does not help. */
async function findOrAddOffer(part, { env, codename, print }) {
  const offer = await findOffer(part, env);
  if (offer !== undefined || existsSync(BACKPORTS_FILE)) return offer;
  const text = deriveBackports(parseSources(readSourceFiles()), codename);
  if (text === undefined) return undefined;
  print(
    `    no configured source has ${part.package} >= ${part.minimumVersion}: adding ${BACKPORTS_FILE} (${codename}-backports)`,
  );
  writeFileSync(BACKPORTS_FILE, text);
  await runApt(["apt-get", "update", ...LOCK], env);
  const added = await findOffer(part, env);
  if (added === undefined) rmSync(BACKPORTS_FILE);
  return added;
}

const lastLines = (text) => text.trimEnd().split("\n").slice(-4).join("\n      ");

/** Installs the packages together and, when that fails, one by one, so that one bad package does not cost the others. */
async function install(packages, { env, print, more = [] }) {
  if (packages.length === 0) return;
  const argv = [...INSTALL, ...LOCK, ...more, ...packages];
  const result = await runApt(argv, env);
  if (result.code === 0) return;
  if (packages.length === 1) {
    print(`    ${argv.join(" ")} ended with exit code ${result.code}:\n      ${lastLines(result.tail)}`);
    return;
  }
  for (const name of packages) await install([name], { env, print, more });
}

/**
 * Installs the packages of these parts. It prints what it is about to do first, and what failed; whether a part is there
 * afterwards is for a new probe to say.
 */
export async function installWithApt(parts, { env, codename, print }) {
  const aptEnv = { ...env, DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C.UTF-8" };
  const context = { env: aptEnv, codename, print };
  const ofRelease = parts.filter((part) => part.suite !== "backports");
  const ofBackports = parts.filter((part) => part.suite === "backports");
  print(
    `    installing Debian packages: ${parts.map((part) => part.package).join(", ")} (TURNBOX_NO_APT=1 prevents this)`,
  );
  const update = await runApt(["apt-get", "update", ...LOCK], aptEnv);
  if (update.code !== 0)
    print(`    apt-get update ended with exit code ${update.code}:\n      ${lastLines(update.tail)}`);
  await withoutServiceStarts(async () => {
    await install(
      ofRelease.map((part) => part.package),
      context,
    );
    for (const part of ofBackports) {
      const offer = await findOrAddOffer(part, context);
      if (offer === undefined) {
        print(`    no source offers ${part.package} >= ${part.minimumVersion}`);
        continue;
      }
      await install([part.package], {
        ...context,
        more: offer.targetSuite === undefined ? [] : ["-t", offer.targetSuite],
      });
    }
  });
}
