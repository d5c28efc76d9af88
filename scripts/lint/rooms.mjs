/**
 * The packages and their rooms. A room is a folder directly below `src/`; what belongs in it stands in docs/ARCHITECTURE.md.
 *
 * - `uses`: the other packages that it imports.
 * - `rows`: the rooms from the top to the bottom. A room imports only rooms of rows below its own, types included, so the
 *   rooms of one row never import one another.
 * - `beside`: whether the files beside the rooms stand above them (programs, and what puts a service together) or below.
 * - `adapters`: for a room that holds a port, which of its folders are adapters. A room that is one adapter as a whole has
 *   `() => true`.
 * - `edges`: what converts between the protocol and the domain, by its path below `src/`.
 */
const all = () => true;
const inFolder = (folder) => folder !== undefined;
const inFolderBut =
  (...shared) =>
  (folder) =>
    folder !== undefined && !shared.includes(folder);

export const ROOMS = {
  protocol: { uses: [], edges: all },
  core: { uses: [] },
  // Both ends of the wire, side by side.
  rpc: {
    uses: ["core", "protocol"],
    rows: [["client", "trace"], ["server"], ["metrics", "wire"]],
    beside: "below",
    edges: all,
  },
  "sandbox-host": {
    uses: ["rpc", "core", "protocol"],
    rows: [
      ["rpc"],
      ["recovery", "file-worker"],
      ["warm", "tool", "process"],
      ["turn", "port-access", "health", "file"],
      ["lifecycle"],
      ["container"],
      ["session", "cordon"],
      ["archive"],
      ["record", "template", "doctor"],
      ["storage", "runtime", "network", "object-store", "key-wrap"],
      ["share", "network-policy"],
      ["system"],
    ],
    beside: "above",
    adapters: {
      storage: inFolder,
      runtime: inFolderBut("execution"),
      network: inFolder,
      "object-store": inFolder,
      "key-wrap": inFolder,
    },
    edges: (file) => file.startsWith("rpc/"),
  },
  orchestrator: {
    uses: ["rpc", "core", "protocol"],
    rows: [["rpc", "metrics"], ["fleet"], ["host", "provisioner", "store"], ["control"]],
    beside: "above",
    adapters: { provisioner: inFolder, store: inFolder, control: inFolder, host: all },
    edges: (file) => /^rpc\/|^host\//.test(file),
  },
  client: { uses: ["rpc", "core", "protocol"], edges: all },
  agents: { uses: ["client"], rows: [["environment", "mcp"], ["provider"]], beside: "above" },
  // What starts services on this machine uses core; everything else goes through the library.
  cli: { uses: ["agents", "client", "rpc", "core"] },
};

/** What is wrong with a file of one room importing a file of another, or of none, in the same package; or undefined. */
export function judgeRooms(owner, from, to) {
  if (ROOMS[owner] === undefined) return `the package ${owner} has no record in scripts/lint/rooms.mjs`;
  const { rows, beside } = ROOMS[owner];
  if (rows === undefined || from === undefined || from === to) return undefined;
  if (to !== undefined) return judgeOrder(owner, from, to);
  return beside === "above" ? `${from}/ never imports a file beside the rooms` : undefined;
}

function judgeOrder(owner, from, to) {
  const { rows } = ROOMS[owner];
  const rowOf = (room) => rows.findIndex((row) => row.includes(room));
  const unknown = [from, to].find((room) => rowOf(room) < 0);
  if (unknown !== undefined) return `the room ${unknown}/ of ${owner} has no row in scripts/lint/rooms.mjs`;
  if (rowOf(from) < rowOf(to)) return undefined;
  const where = rowOf(from) === rowOf(to) ? "beside" : "above";
  return `${to}/ stands ${where} ${from}/, and a room imports only rooms below it (scripts/lint/rooms.mjs)`;
}
