/** Test projects of `npm test`, in the order in which they run: what is quick and tells most comes first. */
export const PROJECTS = ["unit", "contract", "e2e", "faults", "attacks"];

/**
 * Reads what follows `npm test --`. Nothing means everything; `--checks` means no tests; `--project NAME` (also several,
 * with commas) and whatever jest understands (a path, `-t NAME`) mean only those tests and no checks.
 */
export function parseArguments(argv) {
  let projects = [];
  let onlyChecks = false;
  const jestArguments = [];
  for (let i = 0; i < argv.length; i += 1) {
    const named = /^--project(?:=(.*))?$/.exec(argv[i]);
    if (argv[i] === "--checks") onlyChecks = true;
    else if (named === null) jestArguments.push(argv[i]);
    else {
      if (named[1] === undefined) i += 1;
      projects.push(...(named[1] ?? argv[i] ?? "").split(","));
    }
  }
  const unknown = projects.filter((name) => !PROJECTS.includes(name));
  if (unknown.length > 0) throw new Error(`no test project ${unknown.join(", ")}; there are ${PROJECTS.join(", ")}`);
  const isWhole = argv.length === 0;
  if (projects.length === 0) projects = onlyChecks ? [] : PROJECTS;
  return {
    isWhole,
    withChecks: isWhole || onlyChecks,
    projects: PROJECTS.filter((p) => projects.includes(p)),
    jestArguments,
  };
}
