/** How much of something is taken. A total of 0 means that the host sets no bound. */
export interface Usage {
  readonly used: number;
  readonly total: number;
}

/** What takes part in placement, as a snapshot of one moment: the host's own report plus what is promised since. */
export interface PlacementInstance {
  readonly instanceId: string;
  /** Anything but `open` takes no new sandboxes. */
  readonly admission: "open" | "cordoned" | "draining" | "booting" | "stopped";
  readonly health: "healthy" | "degraded" | "unhealthy" | "unknown";
  readonly sessions: Usage;
  readonly cpus: Usage;
  readonly memoryBytes: Usage;
  readonly poolBytes: Usage;
  /** Names and `name@version`s of the templates that are there. */
  readonly templates: ReadonlySet<string>;
}

export interface PlacementRequest {
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  /** Empty means the host's default, which every host has. */
  readonly template: string;
  /** Whether a host that lacks the template is about to get it. None is unless given. */
  readonly isComing?: (instanceId: string) => boolean;
}

export interface PlacementRules {
  /** The fraction of each capacity that placement leaves free, from 0 up to but not including 1. */
  readonly headroom: number;
  /** How many candidates are worth trying one after another. */
  readonly maxCandidates: number;
}

/** Why an instance is no candidate. */
export type Obstacle =
  | "cordoned"
  | "draining"
  | "booting"
  | "stopped"
  | "unhealthy"
  | "silent"
  | "sessions"
  | "cpus"
  | "memory"
  | "pool_space"
  | "template";

export type Placement =
  | { readonly kind: "placed"; readonly candidates: readonly [string, ...string[]] }
  | { readonly kind: "refused"; readonly why: ReadonlyMap<Obstacle, number>; readonly message: string };

interface Ranked {
  readonly instanceId: string;
  readonly grade: number;
  /** In steps, so that what two hosts measure at different moments does not outweigh what they hold. */
  readonly loadStep: number;
  readonly sessions: number;
}

const LOAD_STEPS = 50;

/**
 * Where a sandbox should go: the best candidates first, or why there is none. Pure and deterministic. Healthy hosts come
 * before degraded ones, hosts that have the template before others, then the least loaded (of equals the one with the
 * fewest sessions, then the first by id).
 *
 * One pass keeps the best few, so the cost grows with the number of instances alone.
 */
export function findPlacement(
  request: PlacementRequest,
  instances: Iterable<PlacementInstance>,
  rules: PlacementRules,
): Placement {
  const best: Ranked[] = [];
  const why = new Map<Obstacle, number>();
  let worst: Ranked | undefined;
  for (const instance of instances) {
    // Once there are enough, most are ruled out at a glance; why they would have been refused is of no interest then.
    if (worst !== undefined && !mayBeat(instance, worst)) continue;
    const obstacle = findObstacle(request, instance, rules);
    if (obstacle === undefined) keepBest(best, rank(request, instance), rules.maxCandidates);
    else why.set(obstacle, (why.get(obstacle) ?? 0) + 1);
    worst = best[rules.maxCandidates - 1];
  }
  const [first, ...others] = best.map((ranked) => ranked.instanceId);
  if (first === undefined) return { kind: "refused", why, message: explain(why) };
  return { kind: "placed", candidates: [first, ...others] };
}

function findObstacle(
  request: PlacementRequest,
  instance: PlacementInstance,
  rules: PlacementRules,
): Obstacle | undefined {
  if (instance.admission !== "open") return instance.admission;
  if (instance.health === "unhealthy") return "unhealthy";
  if (instance.health === "unknown") return "silent";
  const fill = 1 - rules.headroom;
  if (!fits(instance.sessions, 1, fill)) return "sessions";
  if (!fits(instance.cpus, request.cpus, fill)) return "cpus";
  if (!fits(instance.memoryBytes, request.memoryBytes, fill)) return "memory";
  if (!fits(instance.poolBytes, request.diskBytes, fill)) return "pool_space";
  if (lacksTemplate(request, instance) && request.isComing?.(instance.instanceId) === true) return "template";
  return undefined;
}

function fits(usage: Usage, wanted: number, fill: number): boolean {
  return usage.total === 0 || usage.used + wanted <= usage.total * fill;
}

function rank(request: PlacementRequest, instance: PlacementInstance): Ranked {
  return {
    instanceId: instance.instanceId,
    grade: gradeOf(instance) + (lacksTemplate(request, instance) ? 1 : 0),
    loadStep: Math.floor(loadOf(instance) * LOAD_STEPS),
    sessions: instance.sessions.used,
  };
}

const lacksTemplate = ({ template }: PlacementRequest, { templates }: PlacementInstance): boolean =>
  template !== "" && !templates.has(template);

const gradeOf = ({ health }: PlacementInstance): number => (health === "healthy" ? 0 : 2);

/** False if the instance is certainly worse; true says nothing. */
function mayBeat(instance: PlacementInstance, other: Ranked): boolean {
  const grade = gradeOf(instance);
  if (grade !== other.grade) return grade < other.grade;
  return Math.floor(fraction(instance.sessions) * LOAD_STEPS) <= other.loadStep;
}

/** How full a host is of what it is fullest of. */
function loadOf({ sessions, cpus, memoryBytes, poolBytes }: PlacementInstance): number {
  return Math.max(fraction(sessions), fraction(cpus), fraction(memoryBytes), fraction(poolBytes));
}

const fraction = (usage: Usage): number => (usage.total === 0 ? 0 : usage.used / usage.total);

function isBetter(a: Ranked, b: Ranked): boolean {
  if (a.grade !== b.grade) return a.grade < b.grade;
  if (a.loadStep !== b.loadStep) return a.loadStep < b.loadStep;
  if (a.sessions !== b.sessions) return a.sessions < b.sessions;
  return a.instanceId < b.instanceId;
}

function keepBest(best: Ranked[], candidate: Ranked, limit: number): void {
  const last = best.at(-1);
  if (best.length === limit && last !== undefined && !isBetter(candidate, last)) return;
  const at = best.findIndex((kept) => isBetter(candidate, kept));
  best.splice(at === -1 ? best.length : at, 0, candidate);
  if (best.length > limit) best.pop();
}

const OBSTACLE_WORDS = {
  cordoned: "cordoned",
  draining: "draining",
  booting: "still booting",
  stopped: "stopped",
  unhealthy: "unhealthy",
  silent: "not answering",
  sessions: "full (sessions)",
  cpus: "full (cpu)",
  memory: "full (memory)",
  pool_space: "full (disk)",
  template: "still getting the template",
} as const satisfies Record<Obstacle, string>;

function explain(why: ReadonlyMap<Obstacle, number>): string {
  if (why.size === 0) return "the fleet has no instances";
  return `no instance can take the sandbox: ${[...why].map(([obstacle, count]) => `${String(count)} ${OBSTACLE_WORDS[obstacle]}`).join(", ")}`;
}
