import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { root } from "../bootstrap/layout.mjs";

/** The folder of the package that a file below node_modules is of. */
const packageFolder = (file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0];

function noticeOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const text = file === undefined ? `License: ${license}` : readFileSync(path.join(folder, file), "utf8").trim();
  return { title: `${name} ${version}`, text };
}

/** The licences of other people's packages whose code is in a bundle, by esbuild's account of it. */
export function thirdPartyNotices(metafile) {
  const files = Object.values(metafile.outputs)
    .flatMap(({ inputs }) => Object.entries(inputs))
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
    .map(([file]) => packageFolder(file));
  const notices = [...new Set(files)]
    .filter((folder) => folder !== undefined)
    .map((folder) => noticeOf(path.resolve(root, folder)))
    .sort((a, b) => (a.title < b.title ? -1 : 1));
  const parts = notices.map(({ title, text }) => `${title}\n${"-".repeat(title.length)}\n\n${text}\n`);
  return ["The command line (bundle/) contains code of these packages.\n", ...parts].join("\n\n");
}
