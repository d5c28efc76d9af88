import { main } from "./bootstrap/bootstrap.mjs";
import { exitCodeOf } from "./bootstrap/child.mjs";

/** Makes the tarballs of the packages that others install: `npm run pack [folder]`, `dist-pack/` unless given. */
await main(async ({ run, toolchain }) => {
  const argv = [toolchain.node(), "scripts/pack/main.mjs", ...process.argv.slice(2)];
  return exitCodeOf(await run(argv));
});
