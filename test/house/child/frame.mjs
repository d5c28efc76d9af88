// Stands for a script: it watches its parent and runs one child that prints what happens to it.
import { endChild, exitCodeOf, startChild } from "../../../scripts/bootstrap/child.mjs";
import { watchParent } from "../../../scripts/bootstrap/parent.mjs";

const program = `
  process.on("SIGTERM", () => { console.log("got SIGTERM"); process.exit(7); });
  process.on("SIGINT", () => console.log("got SIGINT"));
  setInterval(() => {}, 1000);
  console.log("child " + process.pid);
`;

const child = startChild([process.execPath, "-e", program], { cwd: process.cwd(), env: process.env });
watchParent({ env: process.env, onGone: () => void endChild(child) });
console.log(`frame ${process.pid}`);
process.exitCode = exitCodeOf(await child.ended);
