// Loaded into jest before its tests: on SIGUSR2 it says what keeps the process from ending.
const { readlinkSync } = require("node:fs");

function targetOf(fd) {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch (cause) {
    return cause.code;
  }
}

function describe(handle) {
  const fd = handle.fd ?? handle._handle?.fd;
  if (handle.spawnargs !== undefined) return `child ${handle.pid}: ${handle.spawnargs.join(" ").slice(0, 200)}`;
  return `${handle.constructor.name}${fd >= 0 ? ` on ${targetOf(fd)}` : ""}`;
}

process.on("SIGUSR2", () => {
  const lines = process._getActiveHandles().map(describe);
  process.stderr.write(`open: ${process.getActiveResourcesInfo().join(" ")}\n${lines.join("\n")}\n`);
});
