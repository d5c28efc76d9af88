import { main } from "./bootstrap/bootstrap.mjs";
import { runCommand } from "./bootstrap/command.mjs";
import { runStep } from "./bootstrap/step.mjs";
import { parseArguments } from "./vm/arguments.mjs";
import { bootGuest } from "./vm/boot.mjs";
import { cacheFolder } from "./vm/cache.mjs";
import { provideHostParts } from "./vm/host-parts.mjs";
import { provideImages } from "./vm/images.mjs";
import { makeProjectDisk } from "./vm/project-disk.mjs";

/** By its own clock the guest has one CPU of a third of the usual speed. */
const TIMEOUT_FACTOR = 4;

let request;
try {
  request = parseArguments(process.argv.slice(2));
} catch (cause) {
  process.stdout.write(`${cause.message}\n`);
  process.exit(2);
}

await main(async ({ run, print, toolchain }) => {
  const { environment: env } = toolchain;
  const startedMs = performance.now();
  const tell = (what) => print(`vm-test: ${what} after ${((performance.now() - startedMs) / 1000).toFixed(1)} s`);
  print("virtual machine");
  await runStep({
    name: "system parts of the virtual machine",
    remedy: "install what is missing",
    work: () => provideHostParts({ env, print }),
    print,
  });
  const { stdout } = await runCommand([toolchain.node(), "--version"], { env, timeoutMs: 20_000 });
  const node = { file: toolchain.node(), version: stdout.trim().replace(/^v/, "") };
  const images = await provideImages({ cache: cacheFolder(env), node, isRefresh: request.isRefresh, print });
  const { projects, jestArguments } = request;
  const project = await makeProjectDisk({ projects, jestArguments, timeoutFactor: TIMEOUT_FACTOR });
  try {
    tell("the guest boots");
    const verdict = await bootGuest({ images, project, run });
    tell("the guest has ended");
    if (verdict.problem !== undefined) print(`failed: ${verdict.problem}`);
    print(verdict.line);
    return verdict.exitCode;
  } finally {
    project.dispose();
  }
});
