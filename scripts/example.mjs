import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { main } from "./bootstrap/bootstrap.mjs";
import { exitCodeOf } from "./bootstrap/child.mjs";
import { root } from "./bootstrap/layout.mjs";

/**
 * Runs a program in TypeScript by the Node of the toolchain: `npm run example agent-loop` one of `examples/`,
 * `npm run example path/to/file.ts` any other file that finds the packages of this clone.
 */
const [name, ...rest] = process.argv.slice(2);

const examples = readdirSync(path.join(root, "examples"))
  .filter((file) => file.endsWith(".ts"))
  .map((file) => path.basename(file, ".ts"));

/** Undefined if there is no such example and no such file. */
function programOf(word = "") {
  if (examples.includes(word)) return path.join(root, "examples", `${word}.ts`);
  // npm runs scripts in the folder of package.json and says where it was started.
  const file = path.resolve(process.env.INIT_CWD ?? process.cwd(), word);
  return word !== "" && existsSync(file) ? file : undefined;
}

const program = programOf(name);
if (program === undefined) {
  process.stdout.write(`usage: npm run example ${examples.join("|")}, or the path of a file\n`);
  process.exit(2);
}

await main(async ({ run, toolchain }) => exitCodeOf(await run([toolchain.node(), program, ...rest])));
