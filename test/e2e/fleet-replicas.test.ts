import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { loadOrCreateHomeToken, loadOrCreateSigningKeys, openHome } from "@turnbox/core";
import { providePythonTools, startMoto } from "@turnbox/core/testing";
import {
  MOTO_IMAGE,
  type MotoAccount,
  type MotoMachine,
  motoEnvironment,
  openMotoAccount,
} from "../../packages/orchestrator/src/provisioner/ec2/moto-machines.suite.ts";
import {
  openFixture,
  type PostgresFixture,
} from "../../packages/orchestrator/src/store/postgres/postgres-fixture.suite.ts";
import { control, listInstances } from "../support/control-calls.ts";
import { copyFleet, startOrchestrator, type TestOrchestrator } from "../support/orchestrator.ts";
import { poll } from "../support/process.ts";

/** A sixth of it is what a busy machine may take for one renewal. */
const LEASE_MS = 6000;
/** Bounds are held to five times what they are on a quiet machine. */
const SLACK = 5;
const SETUP_MS = 400_000;
const TEST_MS = 120_000;
const SEEN_MS = 30_000;

const tools = await providePythonTools();

if (tools === undefined) it.skip("two orchestrators on one PostgreSQL with machines of moto", () => undefined);
else withPython(tools.python);

function withPython(python: string): void {
  const owned = new AsyncDisposableStack();
  let homes: readonly [string, string];
  let fleetId: string;
  let database: PostgresFixture;
  let account: MotoAccount;
  let env: Readonly<Record<string, string>>;
  let leader: TestOrchestrator;
  let follower: TestOrchestrator;

  const leads = async (one: TestOrchestrator): Promise<boolean> => (await one.metric("turnbox_fleet_lease_held")) === 1;
  const epochOf = (one: TestOrchestrator): Promise<number> => one.metric("turnbox_fleet_lease_epoch");
  const start = async (home: string, more: Readonly<Record<string, string>> = {}): Promise<TestOrchestrator> =>
    owned.use(await startOrchestrator(home, { ...env, ...more }));
  const living = async (): Promise<readonly MotoMachine[]> =>
    (await account.machines()).filter(({ state }) => state === "running" || state === "pending");
  const idsOf = (all: readonly { readonly instanceId: string }[]): readonly string[] =>
    all.map(({ instanceId }) => instanceId).sort();
  /** Waits until so many machines live, and the orchestrator lists exactly these. Answers with their ids. */
  const settled = async (seenBy: TestOrchestrator, count: number): Promise<readonly string[]> =>
    await poll(
      `${String(count)} machines, all of them listed`,
      async () => {
        const ids = idsOf(await living());
        const listed = idsOf(await listInstances(seenBy));
        return ids.length === count && JSON.stringify(ids) === JSON.stringify(listed) ? ids : undefined;
      },
      SEEN_MS,
    );
  const isCordoned = async (at: TestOrchestrator, instanceId: string): Promise<boolean> => {
    const { instances } = (await control(at, "FleetService/ListInstances")) as {
      readonly instances?: readonly { readonly instanceId: string; readonly cordoned?: boolean }[];
    };
    return instances?.find((one) => one.instanceId === instanceId)?.cordoned === true;
  };
  const cordonSeen = (at: TestOrchestrator, instanceId: string): Promise<true> =>
    poll("the cordon to be seen", async () => ((await isCordoned(at, instanceId)) ? true : undefined), SEEN_MS);

  beforeAll(async () => {
    const folder = await mkdtemp(join(tmpdir(), "turnbox-replicas-"));
    owned.defer(() => rm(folder, { recursive: true, force: true }));
    homes = [join(folder, "one"), join(folder, "other")];
    fleetId = openHome(homes[0]).id;
    loadOrCreateSigningKeys(join(homes[0], "keys"));
    loadOrCreateHomeToken(join(homes[0], "token"));
    await copyFleet(homes[0], homes[1]);

    const [opened, moto] = await Promise.all([openFixture(), startMoto(python)]);
    database = owned.use(opened);
    owned.use(moto);
    account = owned.use(openMotoAccount(moto.url));
    env = {
      ...motoEnvironment(moto.url),
      TURNBOX_STORE_URL: database.server.url,
      TURNBOX_PROVISIONER: "ec2",
      TURNBOX_EC2_IMAGE: MOTO_IMAGE,
      TURNBOX_EC2_INSTANCE_TYPES: "m5.large",
      TURNBOX_EC2_DISK_GIB: "40",
      TURNBOX_EC2_SUBNETS: await account.makeLoopbackSubnet(),
      TURNBOX_MIN_INSTANCES: "2",
      TURNBOX_WARM_POOL_TARGET: "0",
      TURNBOX_FLEET_HEALTH_INTERVAL: "500ms",
      TURNBOX_LEASE_TTL: `${String(LEASE_MS)}ms`,
    };
    const [one, other] = await Promise.all([start(homes[0]), start(homes[1])]);
    leader = await poll("one to lead", async () => {
      for (const each of [one, other]) if (await leads(each)) return each;
      return undefined;
    });
    follower = leader === one ? other : one;
  }, SETUP_MS);

  afterAll(async () => {
    await owned.disposeAsync();
  }, TEST_MS);

  describe("two orchestrators on one PostgreSQL", () => {
    it(
      "have one leader, which launches as many machines as are wanted, and both know the same",
      async () => {
        const ids = await settled(leader, 2);
        expect(await settled(follower, 2)).toEqual(ids);
        expect([await leads(leader), await leads(follower)]).toEqual([true, false]);
        expect(await account.machines()).toHaveLength(2);
        for (const { tags, clientToken } of await account.machines()) {
          expect(tags).toMatchObject({ "turnbox-fleet": fleetId });
          expect(clientToken).toMatch(/^[0-9a-f]{64}$/);
        }
      },
      TEST_MS,
    );

    it(
      "put an operator's wish that the follower receives on record, and the leader sees it",
      async () => {
        const [instanceId = ""] = await settled(follower, 2);
        await control(follower, "FleetService/CordonInstance", { instanceId, idempotencyKey: randomUUID() });
        const sql = "SELECT admission FROM instances WHERE instance_id = $1";
        expect(await database.inSchema("turnbox")(sql, [instanceId])).toEqual([{ admission: "cordoned" }]);
        await cordonSeen(leader, instanceId);
      },
      TEST_MS,
    );

    it(
      "go on when the leader is killed: the other leads under a higher epoch and launches what is missing, once",
      async () => {
        const epoch = await epochOf(leader);
        const [cordoned = "", doomed = ""] = await settled(follower, 2);
        const killed = leader;
        await killed.kill();
        const killedAtMs = performance.now();
        const ended = (await living()).find(({ instanceId }) => instanceId === doomed);
        await account.terminate(ended?.ec2Id ?? "");

        await poll("the other to lead", async () => ((await leads(follower)) ? true : undefined), SLACK * LEASE_MS, 10);
        expect(await epochOf(follower)).toBeGreaterThan(epoch);
        const ids = await settled(follower, 2);
        expect(performance.now() - killedAtMs).toBeLessThan(SLACK * LEASE_MS);
        expect(ids).toContain(cordoned);
        expect(ids).not.toContain(doomed);
        expect(await isCordoned(follower, cordoned)).toBe(true);
        expect(await account.machines()).toHaveLength(3);

        leader = follower;
        follower = await start(killed.home);
      },
      TEST_MS,
    );

    it(
      "have a follower in the one that comes back, whose wishes the leader fulfils",
      async () => {
        const epoch = await epochOf(leader);
        const before = await settled(follower, 2);
        const [instanceId = ""] = before;
        const drain = { instanceId, idempotencyKey: randomUUID(), timeout: "0s", sessions: "DRAIN_SESSIONS_DISCARD" };
        await control(follower, "FleetService/DrainInstance", drain);
        const after = await poll(
          "the drained machine to be replaced",
          async () => {
            const ids = await settled(follower, 2);
            return ids.includes(instanceId) ? undefined : ids;
          },
          SEEN_MS,
        );
        expect(await settled(leader, 2)).toEqual(after);
        expect([await leads(leader), await leads(follower)]).toEqual([true, false]);
        expect(await epochOf(leader)).toBe(epoch);
      },
      TEST_MS,
    );

    it(
      "keep one of another fleet, or with another signing key, out of their store",
      async () => {
        const foreign = join(homes[0], "..", "foreign");
        await expect(start(foreign)).rejects.toThrow(
          `CONFIG_INVALID: storeUrl: the store belongs to the fleet ${fleetId}`,
        );
        await expect(start(foreign, { TURNBOX_FLEET_ID: fleetId })).rejects.toThrow("sign with another key");
      },
      TEST_MS,
    );

    it("have launched no instance twice, and no two have led under one epoch", async () => {
      const all = await account.machines();
      expect(all).toHaveLength(4);
      expect(new Set(idsOf(all)).size).toBe(all.length);
      expect(new Set(all.map(({ clientToken }) => clientToken)).size).toBe(all.length);
      const logged = (await Promise.all([leader.logged(), follower.logged()])).flat();
      const of = (message: string) => logged.filter(({ msg }) => msg === message);
      expect(idsOf(of("launches an instance") as never)).toEqual(idsOf(all));
      const epochs = of("leads the fleet").map(({ epoch }) => epoch);
      expect(epochs.length).toBeGreaterThan(1);
      expect(new Set(epochs).size).toBe(epochs.length);
    });
  });
}
