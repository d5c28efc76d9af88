/** Test projects that run in the guest. */
const PROJECTS = ["contract", "e2e"];

/**
 * Reads what follows `npm run vm-test --`. Nothing means everything. `--refresh` takes the newest kernel and packages;
 * `--smoke` runs no tests, only OpenZFS itself; `--project NAME` runs that one; the rest is for jest.
 */
export function parseArguments(argv) {
  const request = { isRefresh: false, projects: PROJECTS, jestArguments: [] };
  const rest = [...argv];
  while (rest.length > 0) {
    const word = rest.shift();
    if (word === "--refresh") request.isRefresh = true;
    else if (word === "--smoke") request.projects = [];
    else if (word === "--project") request.projects = (rest.shift() ?? "").split(",");
    else request.jestArguments.push(word);
  }
  const unknown = request.projects.filter((name) => !PROJECTS.includes(name));
  if (unknown.length > 0) throw new Error(`no test project ${unknown.join(", ")}; there are ${PROJECTS.join(", ")}`);
  return request;
}
