import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { brotliCompressSync, constants } from "node:zlib";
import { build } from "esbuild";
import { root } from "./bootstrap/layout.mjs";

/**
 * Writes the services of a commit into one compressed file, for the test that starts this code on a home of theirs:
 * `node scripts/upgrade-fixture.mjs COMMIT`. The commit is cloned, built by its own scripts, and made smaller here.
 */
const SERVICES = ["sandbox-host", "orchestrator"];
/** What a service reads beside its programs. */
const BESIDE = ["package.json", "system-parts.json"];
/** Programs in other languages. */
const FOLDERS = ["perl", "programs"];
/** The terminals' prebuilt code is linked by the test; traces are off in it. */
const EXTERNAL = ["@lydell/node-pty", "*/otel-tracing.js"];
const folder = path.join(root, "test/upgrade-fixtures");

const [commit] = process.argv.slice(2);
if (commit === undefined) {
  process.stdout.write("usage: node scripts/upgrade-fixture.mjs COMMIT\n");
  process.exit(2);
}

function must(command, args, cwd) {
  const { status, stdout, error } = spawnSync(command, args, { cwd, stdio: ["ignore", "pipe", "inherit"] });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} failed in ${cwd}`, { cause: error });
  return stdout.toString().trim();
}

/** The paths of the files below a folder whose names end so; none if there is no such folder. */
function filesBelow(base, ending) {
  return readdirSync(base, { recursive: true }).filter((name) => name.endsWith(ending));
}

/** A program in one file, with nothing to resolve when it starts but what is external. */
async function shrink(file) {
  const options = { bundle: true, minify: true, platform: "node", target: "node24", format: "esm" };
  const { outputFiles } = await build({ ...options, entryPoints: [file], external: EXTERNAL, write: false });
  return outputFiles[0].text;
}

/** By path: the text of each file that a service consists of. */
async function collect(clone, service) {
  const base = path.join(clone, "packages", service);
  const texts = {};
  for (const name of readdirSync(base).filter((entry) => BESIDE.includes(entry)))
    texts[`${service}/${name}`] = readFileSync(path.join(base, name), "utf8");
  for (const folder of readdirSync(base).filter((entry) => FOLDERS.includes(entry)))
    for (const name of filesBelow(path.join(base, folder), ""))
      texts[`${service}/${folder}/${name}`] = readFileSync(path.join(base, folder, name), "utf8");
  for (const name of filesBelow(path.join(base, "bin"), ".mjs"))
    texts[`${service}/bin/${name}`] = readFileSync(path.join(base, "bin", name), "utf8");
  for (const name of filesBelow(path.join(base, "bundle"), ".js"))
    texts[`${service}/bundle/${name}`] = await shrink(path.join(base, "bundle", name));
  return texts;
}

const name = must("git", ["rev-parse", "--short=7", `${commit}^{commit}`], root);
const scratch = mkdtempSync(path.join(tmpdir(), "turnbox-fixture-"));
try {
  const clone = path.join(scratch, "clone");
  must("git", ["clone", "--quiet", "--no-checkout", root, clone], root);
  must("git", ["checkout", "--quiet", name], clone);
  const bootstrap = 'await (await import("./scripts/bootstrap/bootstrap.mjs")).main(() => 0)';
  must(process.execPath, ["--input-type=module", "--eval", bootstrap], clone);
  const files = {};
  for (const service of SERVICES) Object.assign(files, await collect(clone, service));
  const text = Buffer.from(JSON.stringify(files));
  const params = {
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
    [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
    [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
    [constants.BROTLI_PARAM_SIZE_HINT]: text.length,
  };
  const packed = brotliCompressSync(text, { params });
  writeFileSync(path.join(folder, `${name}.json.br`), packed);
  process.stdout.write(`${name}.json.br: ${text.length} bytes in ${packed.length}\n`);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
