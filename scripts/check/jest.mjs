import { accessSync, constants, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { exitCodeOf } from "../bootstrap/child.mjs";
import { root, toolchainFolder } from "../bootstrap/layout.mjs";
import { parseAllowedSkips, tallyJest } from "./tally.mjs";

const REPORT_POLL_MS = 500;
const LEAK_GRACE_MS = 10_000;
/** For jest to say what is open. */
const LAST_WORDS_MS = 1000;
const LAST_WORDS = path.join(import.meta.dirname, "open-handles.cjs");
/** For one project of `npm test`; whole forms give a longer one. */
const RUN_TIMEOUT_MS = 45 * 60_000;

/** The files of all projects but unit share the machine's one zfs daemon, its network and its pids: they run one by one. */
const WORKERS = { unit: ["--maxWorkers=2"] };

/** Projects whose files need no disk: a flush to one costs them time and shows nothing. */
const IN_MEMORY = new Set(["unit"]);
const MEMORY = "/dev/shm";

/** Compiled code of the many short programs that tests start, which would else be compiled each time. */
const COMPILE_CACHE = path.join(toolchainFolder, "compile-cache");

const scratchOf = (name, folder) => (IN_MEMORY.has(name) ? { TMPDIR: folder } : {});

function placeOf(name) {
  if (!IN_MEMORY.has(name)) return os.tmpdir();
  try {
    accessSync(MEMORY, constants.W_OK | constants.X_OK);
    return MEMORY;
  } catch {
    return os.tmpdir();
  }
}

function readReport(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}

/**
 * Ends a jest that has written its report but does not exit, because a test left something open, and one that takes far
 * too long. It says what is open before. Answers why it did so.
 */
function guard(child, reportFile, timeoutMs) {
  let reason;
  const startedMs = performance.now();
  let reportedMs;
  const timer = setInterval(() => {
    const nowMs = performance.now();
    if (reportedMs === undefined && existsSync(reportFile)) reportedMs = nowMs;
    if (reportedMs !== undefined && nowMs - reportedMs > LEAK_GRACE_MS)
      reason = "tests left handles open: jest did not exit by itself";
    else if (nowMs - startedMs > timeoutMs) reason = `no end within ${timeoutMs / 60_000} minutes`;
    if (reason === undefined) return;
    clearInterval(timer);
    child.stop("SIGUSR2");
    setTimeout(child.killGroup, LAST_WORDS_MS);
  }, REPORT_POLL_MS);
  return { stop: () => clearInterval(timer), reason: () => reason };
}

const nodeOptions = (env) => [env.NODE_OPTIONS, "--experimental-vm-modules", "--disable-warning=ExperimentalWarning"];

/**
 * Runs one jest project and answers its tally. Everything that it prints goes to the descriptor `output`; `before` stands
 * before the command.
 */
export async function runJestProject(
  name,
  { run, toolchain, jestArguments = [], env = {}, isWhole, output = 1, before = [], timeoutMs = RUN_TIMEOUT_MS },
) {
  const folder = mkdtempSync(path.join(placeOf(name), "turnbox-test-"));
  const reportFile = path.join(folder, "report.json");
  const argv = [
    ...before,
    ...[toolchain.node(), "--require", LAST_WORDS],
    ...[path.join(root, "node_modules/jest/bin/jest.js"), "--selectProjects", name],
    ...["--json", "--outputFile", reportFile, "--passWithNoTests", ...(WORKERS[name] ?? ["--runInBand"])],
    ...jestArguments,
  ];
  const isCi = toolchain.environment.CI === "true";
  let watch;
  try {
    const end = await run(argv, {
      stdio: ["ignore", output, output],
      env: {
        NODE_COMPILE_CACHE: COMPILE_CACHE,
        ...env,
        ...scratchOf(name, folder),
        NODE_OPTIONS: nodeOptions(toolchain.environment)
          .filter((option) => option !== undefined)
          .join(" "),
      },
      onStart: (child) => {
        watch = guard(child, reportFile, timeoutMs);
      },
    });
    watch.stop();
    const reason = watch.reason();
    const tally = tallyJest({
      name,
      report: readReport(reportFile),
      // A jest that had to be ended is named below; its tests count as they were reported.
      code: reason === undefined ? exitCodeOf(end) : 0,
      skips: isCi && isWhole ? "refuse" : "count",
      allowedSkips: parseAllowedSkips(readFileSync(path.join(root, "test/allowed-skips.json"), "utf8")),
    });
    if (reason !== undefined) tally.failures.push(`${name}: ${reason}`);
    return { ...tally, isTests: true };
  } finally {
    watch?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
