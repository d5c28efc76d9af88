import { main } from "./bootstrap/bootstrap.mjs";
import { exitCodeOf } from "./bootstrap/child.mjs";

/** Prepares a release: `npm run release [version] [-- --dry-run]`; see CONTRIBUTING.md. */
await main(async ({ run, toolchain }) => {
  const argv = [toolchain.node(), "scripts/release/main.mjs", ...process.argv.slice(2)];
  return exitCodeOf(await run(argv));
});
