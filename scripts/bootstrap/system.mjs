import { readFileSync } from "node:fs";
import { installWithApt } from "./apt.mjs";
import { removeLeftover } from "./service-policy.mjs";
import { findMissingParts, readSystemParts } from "./system-parts.mjs";

/** `KEY=value` lines of os-release, unquoted. */
export function parseOsRelease(text) {
  const lines = text.split("\n").map((line) => /^([A-Z0-9_]+)=(.*)$/.exec(line));
  return Object.fromEntries(
    lines.filter((line) => line !== null).map(([, key, value]) => [key, value.replace(/^(["'])(.*)\1$/, "$2")]),
  );
}

/** This machine, as far as it decides whether packages can be installed. */
export function describeMachine(env) {
  const read = (file) => {
    try {
      return readFileSync(file, "utf8");
    } catch {
      return "";
    }
  };
  return {
    platform: process.platform,
    isRoot: process.getuid?.() === 0,
    os: parseOsRelease(read("/etc/os-release")),
    aptForbidden: env.TURNBOX_NO_APT === "1",
  };
}

const isDebian = ({ os }) => os.ID === "debian" || (os.ID_LIKE ?? "").split(" ").includes("debian");

/** Why packages are not installed on this machine, or undefined when they can be. */
export function refusal(machine) {
  if (machine.platform !== "linux") return `a sandbox-host runs on Linux only, this is ${machine.platform}`;
  if (!isDebian(machine)) return `this system (${machine.os.ID ?? "unknown"}) is not Debian or like it`;
  if (machine.aptForbidden) return "TURNBOX_NO_APT=1 is set";
  if (!machine.isRoot) return "this user is not root";
  return undefined;
}

/** The commands that would bring these parts, as a person types them. */
export function manualCommands(parts, machine) {
  if (machine.platform !== "linux" || !isDebian(machine)) return [];
  const install = ["apt-get", "install", "--no-install-recommends"];
  const names = (suite) => parts.filter((part) => (part.suite === "backports") === suite).map((part) => part.package);
  const [ofRelease, ofBackports] = [names(false), names(true)];
  const commands = [];
  if (ofRelease.length > 0) commands.push([...install, ...ofRelease].join(" "));
  if (ofBackports.length > 0) {
    const suite = `${machine.os.VERSION_CODENAME}-backports`;
    commands.push(`${[...install, "-t", suite, ...ofBackports].join(" ")}   # with ${suite} among the apt sources`);
  }
  return commands.map((command) => (machine.isRoot ? command : `sudo ${command}`));
}

/**
 * What is missing, what that costs, what works without it, and what to do: lines for people.
 * @returns {string[]}
 */
export function describeMissing(missing, machine) {
  const lines = missing.flatMap(({ part, problem, fix }) => [
    `    missing: ${part.name} (${problem})`,
    `      needed for: ${part.neededFor}`,
    `      without it: ${part.without}`,
    ...(fix === "machine" ? [`      to get it:  ${part.deviceRemedy}`] : []),
  ]);
  const parts = missing.filter(({ fix }) => fix === "package").map(({ part }) => part);
  if (parts.length === 0) return lines;
  const commands = manualCommands(parts, machine);
  if (commands.length > 0)
    return [...lines, "    to install by hand:", ...commands.map((command) => `      ${command}`)];
  const names = parts.flatMap((part) => part.commands).join(", ");
  return [...lines, `    to install by hand: the system's own packages that bring ${names}`];
}

/**
 * Sees to the system parts. What cannot be had is said, with its cost, and is no failure: a host tells by itself what it
 * cannot do without.
 */
export async function provideSystemParts({ env, print }) {
  const startedMs = performance.now();
  const parts = readSystemParts();
  const machine = describeMachine(env);
  if (machine.isRoot) removeLeftover();
  let missing = await findMissingParts(parts, env);
  if (missing.length === 0) {
    print("  system parts: all there");
    return;
  }
  print("  system parts ...");
  const wanted = missing.filter(({ fix }) => fix === "package").map(({ part }) => part);
  const reason = refusal(machine);
  if (reason !== undefined) print(`    nothing is installed: ${reason}`);
  else if (wanted.length > 0) {
    await installWithApt(wanted, { env, codename: machine.os.VERSION_CODENAME ?? "", print });
    missing = await findMissingParts(parts, env);
  }
  for (const line of describeMissing(missing, machine)) print(line);
  const result = missing.length === 0 ? "all there" : `${missing.length} of ${parts.length} missing, going on without`;
  print(`  system parts: ${result}, ${((performance.now() - startedMs) / 1000).toFixed(1)} s`);
}
