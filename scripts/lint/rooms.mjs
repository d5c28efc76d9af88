/**
 * The rooms of each package, from the top to the bottom. A room is a folder directly below `src/`; it imports only rooms of
 * rows below its own, so the rooms of one row never import one another. Type imports count. What a room is for stands in
 * docs/ARCHITECTURE.md.
 */
export const ROOMS = {
  "sandbox-host": [
    ["rpc"],
    ["recovery", "file-worker"],
    ["warm", "tool", "process"],
    ["turn", "port-access", "health", "file"],
    ["lifecycle"],
    ["container"],
    ["session", "cordon"],
    ["record", "template", "doctor"],
    ["storage", "runtime", "network"],
    ["share", "network-policy"],
    ["async"],
  ],
  orchestrator: [["rpc", "metrics"], ["control"], ["instance"], ["store"], ["async"]],
  client: [["cli"], ["environment", "mcp"], ["provider"], ["sandbox"]],
};

/** Rooms without a row, which no rule looks at yet: `turnbox/` and `sandbox/` of the client import one another. */
const UNORDERED = { client: ["turnbox"] };

/** Packages whose files beside the rooms are programs and what puts them together: no room imports those. */
const SERVICES = ["sandbox-host", "orchestrator"];

/** What is wrong with a file of one room importing a file of another, or of none, in the same package; or undefined. */
export function judgeRooms(owner, from, to) {
  const rows = ROOMS[owner];
  if (rows === undefined || from === undefined || from === to) return undefined;
  if (to === undefined) {
    return SERVICES.includes(owner) ? `the room ${from}/ never imports a file beside the rooms` : undefined;
  }
  if ([from, to].some((room) => UNORDERED[owner]?.includes(room) === true)) return undefined;
  const [above, below] = [from, to].map((room) => rows.findIndex((row) => row.includes(room)));
  const unknown = above < 0 ? from : below < 0 ? to : undefined;
  if (unknown !== undefined) return `the room ${unknown}/ of ${owner} has no row in scripts/lint/rooms.mjs`;
  if (above < below) return undefined;
  const where = above === below ? "stands beside" : "stands above";
  return `${to}/ ${where} ${from}/, and a room imports only rooms below it (scripts/lint/rooms.mjs)`;
}
