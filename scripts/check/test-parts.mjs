import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { installWithApt } from "../bootstrap/apt.mjs";
import { describeMachine, describeMissing, refusal } from "../bootstrap/system.mjs";
import { findMissingParts } from "../bootstrap/system-parts.mjs";

const SERVERS = "/usr/lib/postgresql";
const CLUSTER_SETTINGS = "/etc/postgresql-common/createcluster.d";

/** What tests need and the services do not: `npm start` neither asks for it nor installs it. */
export const TEST_PARTS = [
  {
    name: "PostgreSQL's server",
    commands: ["postgres", "initdb"],
    package: "postgresql",
    suite: "release",
    neededFor: "the tests of the store for several orchestrators",
    without: "those tests fail; nothing else needs it",
  },
];

/** Debian keeps the programs of each version in a folder of its own, outside of the PATH. */
function withServers(env, folder = SERVERS) {
  let versions = [];
  try {
    versions = readdirSync(folder);
  } catch {
    // Not installed.
  }
  const folders = versions.map((version) => path.join(folder, version, "bin"));
  return { ...env, PATH: [env.PATH ?? "", ...folders].join(path.delimiter) };
}

/** Does `work` while the package of the server may not make a database of its own; tests make theirs. */
export async function withoutMainCluster(work, folder = CLUSTER_SETTINGS) {
  const file = path.join(folder, "turnbox-tests.conf");
  const remove = () => rmSync(file, { force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, "create_main_cluster = false\n");
  process.on("exit", remove);
  try {
    return await work();
  } finally {
    remove();
    process.off("exit", remove);
  }
}

/** Sees to the parts. What cannot be had is said and is no failure here: the tests that need it fail. */
export async function provideTestParts({ env, print }) {
  const machine = describeMachine(env);
  let missing = await findMissingParts(TEST_PARTS, withServers(env));
  if (missing.length === 0) return;
  print("test parts ...");
  const reason = refusal(machine);
  if (reason !== undefined) print(`    nothing is installed: ${reason}`);
  else {
    const parts = missing.map((found) => found.part);
    const codename = machine.os.VERSION_CODENAME ?? "";
    await withoutMainCluster(() => installWithApt(parts, { env, codename, print }));
    missing = await findMissingParts(TEST_PARTS, withServers(env));
  }
  for (const line of describeMissing(missing, machine)) print(line);
}
