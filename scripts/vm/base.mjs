import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { chooseOffer, parsePolicy } from "../bootstrap/apt-sources.mjs";
import { cachedStep } from "./cache.mjs";
import { runInside, runNicely } from "./chroot.mjs";
import { readSources } from "./sources.mjs";

const OPENZFS = { package: "zfs-dkms", pattern: "^(\\d+\\.\\d+)", minimumVersion: "2.3" };
const RUNSC = { package: "runsc", pattern: "(\\d{8})", minimumVersion: "20240101" };

/** The version that will be installed, and the suite to ask for it. */
async function findPackage(folder, wanted) {
  const policy = parsePolicy((await runInside(folder, `apt-cache policy ${wanted.package}`)).stdout);
  const offer = chooseOffer({ policy, ...wanted });
  if (offer === undefined) throw new Error(`no source offers ${wanted.package} >= ${wanted.minimumVersion}`);
  const { version } =
    policy.offered.find(({ suite }) => suite === offer.targetSuite) ??
    policy.offered.find((offered) => offered.version === policy.candidate);
  return { version, suite: offer.targetSuite };
}

/** The kernel that the metapackage stands for now. Old ones leave the mirrors in time. */
async function findKernel(folder) {
  const { stdout } = await runInside(folder, "apt-cache depends linux-image-cloud-amd64");
  const abi = /Depends: linux-image-(\S+)/.exec(stdout)?.[1];
  if (abi === undefined) throw new Error("linux-image-cloud-amd64 depends on no kernel");
  return abi;
}

/** The machine's own way to its mirrors (a proxy, dates that are not looked at). */
async function acquireSettings() {
  const { stdout } = await runNicely(["apt-config", "dump", "--no-empty"]);
  return stdout.split("\n").filter((line) => line.startsWith("Acquire::"));
}

async function makeBase(draft) {
  const { codename, mirror, text } = readSources();
  const root = path.join(draft, "root");
  mkdirSync(draft);
  const more = mirror.startsWith("https:") ? ["--include=ca-certificates"] : [];
  await runNicely(["debootstrap", "--variant=minbase", ...more, codename, root, mirror]);
  writeFileSync(path.join(root, "etc/apt/sources.list"), "");
  writeFileSync(path.join(root, "etc/apt/sources.list.d/machine.sources"), text);
  writeFileSync(path.join(root, "etc/apt/apt.conf.d/90machine"), `${(await acquireSettings()).join("\n")}\n`);
  writeFileSync(path.join(root, "usr/sbin/policy-rc.d"), "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  await runInside(root, "apt-get update");
  const versions = {
    kernel: await findKernel(root),
    zfs: await findPackage(root, OPENZFS),
    runsc: await findPackage(root, RUNSC),
  };
  writeFileSync(path.join(draft, "versions.json"), JSON.stringify(versions));
}

/** A small Debian of this machine's release, and the versions that all else is made of. They stay until it is made anew. */
export function describeBase(cache) {
  const folder = path.join(cache, "base");
  return {
    folder,
    root: path.join(folder, "root"),
    versions: () => JSON.parse(readFileSync(path.join(folder, "versions.json"), "utf8")),
    step: cachedStep({
      name: "base (debootstrap)",
      target: folder,
      remedy: "check that apt reaches its mirrors: apt-get update",
      make: makeBase,
    }),
  };
}
