import type { DescMethod } from "@bufbuild/protobuf";
import type { Chance } from "./chance.ts";
import { nameOf } from "./methods.ts";
import { type KnownTool, newSubject, type Role, type Subject, type World } from "./world.ts";

/** What one input is about: its values fit each other, so that some calls go all the way. */
export interface Aim {
  readonly chance: Chance;
  readonly world: World;
  readonly subject: Subject;
  readonly tool: KnownTool;
  /** How often a value is a hostile one, 0 to 1. */
  readonly hostility: number;
}

const ROLES: Readonly<Record<string, Role>> = {
  "SessionService/PauseSession": "resting",
  "SessionService/ResumeSession": "resting",
  "SandboxControlService/PauseSandbox": "resting",
  "SandboxControlService/ResumeSandbox": "resting",
  "SnapshotService/RollbackSession": "turning",
  "SessionService/RepairSession": "turning",
  "SessionService/UpdateNetworkPolicy": "turning",
  "SessionService/DestroySession": "spare",
  "SessionService/ExtendSession": "spare",
  "SandboxControlService/DestroySandbox": "spare",
};

export const roleOf = (method: DescMethod): Role => ROLES[nameOf(method)] ?? "steady";

const NO_TOOL: KnownTool = { name: "bash", schema: { properties: {}, required: [] } };

/** Sound as a whole, sound but for a value or two, or wild. */
const HOSTILITIES = [0, 0, 0, 0.1, 0.1, 0.1, 0.2, 0.6] as const;

/** Calls that take seconds when they go through; most of theirs do not. */
const COSTLY =
  /^(UpdateNetworkPolicy|RepairSession|RollbackSession|LaunchProcess|ForkSession|ForkSandbox|CreateSandbox|DrainInstance)$/;
const COSTLY_HOSTILITIES = [0, 0.2, 0.3, 0.4, 0.6] as const;

export function takeAim(method: DescMethod, chance: Chance, world: World): Aim {
  const subjects = chance.happens(0.9) ? world.subjects(roleOf(method)) : world.all();
  const spares = roleOf(method) === "spare" ? world.subjects("spare") : subjects;
  return {
    chance,
    world,
    subject: chance.among(spares, newSubject("fz-gone")),
    tool: chance.among(world.tools, NO_TOOL),
    hostility: COSTLY.test(method.name) ? chance.of(COSTLY_HOSTILITIES) : chance.of(HOSTILITIES),
  };
}
