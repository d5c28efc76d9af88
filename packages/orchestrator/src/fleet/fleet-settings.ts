import { setting } from "@turnbox/core";

/** What the fleet keeps to. Those about numbers of instances matter only if it launches machines by itself. */
export const FLEET_SETTINGS = {
  provisioner: setting.choice({
    env: "TURNBOX_PROVISIONER",
    description: "Who makes the machines: processes on this machine, a fixed list, or EC2.",
    default: "local",
    values: ["local", "static", "ec2"],
  }),
  staticHosts: setting.textList({
    env: "TURNBOX_STATIC_HOSTS",
    description: "The sandbox-hosts of a fixed list, each as ID=URL.",
    default: [],
  }),
  storeUrl: setting.secret({
    env: "TURNBOX_STORE_URL",
    description:
      "A PostgreSQL database (postgres://...) that several orchestrators share; absent means a file in the home.",
    default: null,
  }),
  fleetId: setting.text({
    env: "TURNBOX_FLEET_ID",
    description: "Which machines are its own; the same for all orchestrators of a fleet. Absent means the home's.",
    default: null,
    pattern: /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/,
  }),
  minInstances: setting.int({
    env: "TURNBOX_MIN_INSTANCES",
    description: "The fleet is never smaller.",
    default: 1,
    min: 0,
    max: 10_000,
  }),
  maxInstances: setting.int({
    env: "TURNBOX_MAX_INSTANCES",
    description: "The fleet never grows beyond that.",
    default: 50,
    min: 1,
    max: 10_000,
  }),
  warmPoolTarget: setting.int({
    env: "TURNBOX_WARM_POOL_TARGET",
    description: "How many ready instances without sandboxes are kept; fast growth asks for more.",
    default: 2,
    min: 0,
    max: 1000,
  }),
  idleCooldown: setting.durationMs({
    env: "TURNBOX_IDLE_COOLDOWN",
    description: "How long an instance must be empty before it is given back.",
    default: 600_000,
  }),
  provisionTimeout: setting.durationMs({
    env: "TURNBOX_PROVISION_TIMEOUT",
    description: "A new machine whose host never answered is ended after that time.",
    default: 300_000,
    min: 10_000,
  }),
  drainTimeout: setting.durationMs({
    env: "TURNBOX_DRAIN_TIMEOUT",
    description: "How long sandboxes go on while their instance is emptied; then they are paused.",
    default: 1_800_000,
  }),
  maxConcurrentProvisions: setting.int({
    env: "TURNBOX_MAX_CONCURRENT_PROVISIONS",
    description: "How many machines boot at the same time at most.",
    default: 3,
    min: 1,
    max: 1000,
  }),
  healthyThreshold: setting.int({
    env: "TURNBOX_HEALTHY_THRESHOLD",
    description: "Good answers in a row after which an ill host takes new sandboxes again.",
    default: 3,
    min: 1,
    max: 1000,
  }),
  unhealthyThreshold: setting.int({
    env: "TURNBOX_UNHEALTHY_THRESHOLD",
    description: "Bad or missing answers in a row after which a host takes no new sandboxes.",
    default: 3,
    min: 1,
    max: 1000,
  }),
  maxTerminateRetries: setting.int({
    env: "TURNBOX_MAX_TERMINATE_RETRIES",
    description: "Failed ends of a machine after which people are told.",
    default: 5,
    min: 1,
    max: 1000,
  }),
  maxWaitingCreates: setting.int({
    env: "TURNBOX_MAX_WAITING_CREATES",
    description: "How many creates wait for room at most; further ones are refused at once.",
    default: 256,
    min: 0,
    max: 100_000,
  }),
  bootTime: setting.durationMs({
    env: "TURNBOX_BOOT_TIME",
    description: "How long a machine takes from its launch to its first answer, about.",
    default: 60_000,
    min: 1000,
  }),
  wakeTimeout: setting.durationMs({
    env: "TURNBOX_WAKE_TIMEOUT",
    description: "How long the start of a stopped instance may take.",
    default: 180_000,
    min: 1000,
  }),
  leaseTtl: setting.durationMs({
    env: "TURNBOX_LEASE_TTL",
    description: "How long an orchestrator that is gone keeps others from leading the fleet.",
    default: 15_000,
    min: 1000,
  }),
} as const;
