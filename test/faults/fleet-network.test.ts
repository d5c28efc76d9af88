import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { FLEET_BACKENDS } from "../support/backends.ts";
import {
  createSandbox,
  destroySandbox,
  getSandbox,
  instancesReady,
  listSandboxes,
  type SeenSandbox,
} from "../support/control-calls.ts";
import { Refusal, startHost, type TestHost } from "../support/host.ts";
import { type HostNetwork, makeCertificate, makeHostNetwork } from "../support/host-network.ts";
import { poll } from "../support/process.ts";
import { IS_FULL, SLACK } from "../support/random.ts";
import { makeHome, startServer, type TestServer } from "../support/server.ts";

const PORT = 9100;
const CUT_MS = IS_FULL ? 60_000 : 10_000;
/** How long it may take until a dead connection is noticed. */
const NOTICED_MS = 20_000 * SLACK;
/** A few kilobytes a second: a call takes seconds, and none is lost. */
const SLOW_BITS_PER_SECOND = 32_000;
const START_MS = 300_000;
const TEST_MS = 600_000;

/** A host on a machine of its own, as far as the network goes. */
interface Place {
  readonly network: HostNetwork;
  readonly host: TestHost;
  readonly instanceId: string;
}

const stack = new AsyncDisposableStack();
let server: TestServer;
let places: readonly Place[] = [];

const exec = async (sandboxId: string, script: string): Promise<string> => {
  const { exitCode, stdout, stderr } = await server.cli("exec", sandboxId, "--no-stdin", "--", "sh", "-c", script);
  if (exitCode !== 0) throw new Error(`${script}: exit ${exitCode}: ${stderr}`);
  return stdout;
};
const placeOf = ({ instanceId }: SeenSandbox): Place => {
  const found = places.find((place) => place.instanceId === instanceId);
  if (found === undefined) throw new Error(`there is no host ${instanceId}`);
  return found;
};
/** Sandboxes, one at least on each host, with a file in each. */
const someOnEach = async (
  labels: Readonly<Record<string, string>>,
): Promise<readonly [SeenSandbox, ...SeenSandbox[]]> => {
  const made = new Map<string, SeenSandbox>();
  const first = await createSandbox(server, { labels, idempotencyKey: randomUUID() });
  made.set(first.instanceId, first);
  const others: SeenSandbox[] = [];
  // A host that was taken back a moment ago may still have to be told that it takes new sandboxes.
  await poll("a sandbox on each host", async () => {
    if (made.size === places.length) return true;
    const next = await createSandbox(server, { labels, idempotencyKey: randomUUID() });
    made.set(next.instanceId, next);
    others.push(next);
    return undefined;
  });
  for (const { sandboxId, sessionId } of [first, ...others]) await exec(sandboxId, `echo ${sessionId} > a; sync`);
  return [first, ...others];
};
const expectUnharmed = async (made: readonly SeenSandbox[]): Promise<void> => {
  for (const { sandboxId, sessionId, generation } of made) {
    const seen = await poll(
      "the sandbox to answer",
      () => getSandbox(server, sandboxId).catch(() => undefined),
      START_MS,
      500,
    );
    expect(seen).toMatchObject({ sandboxId, state: "SESSION_STATE_ACTIVE", generation });
    expect(await exec(sandboxId, "cat a")).toBe(`${sessionId}\n`);
  }
};
const destroyAll = async (labels: Readonly<Record<string, string>>): Promise<void> => {
  for (const { sandboxId } of (await listSandboxes(server, labels)).sandboxes) await destroySandbox(server, sandboxId);
};
/** Sends the same create until it is answered with a sandbox. */
const createAtLast = async (body: Readonly<Record<string, unknown>>): Promise<SeenSandbox> =>
  await poll(
    "a create to be answered",
    () =>
      createSandbox(server, body).catch((thrown: unknown) => {
        if (!(thrown instanceof Refusal)) throw thrown;
        return undefined;
      }),
    START_MS,
    500,
  );

beforeAll(async () => {
  const home = stack.use(await makeHome());
  const networks: HostNetwork[] = [];
  for (let place = 0; place < 3; place += 1) networks.push(stack.use(await makeHostNetwork(place)));
  const tls = stack.use(await makeCertificate(networks.map(({ address }) => address)));
  const hosts: TestHost[] = [];
  for (const [index, { address, launcher }] of networks.entries()) {
    const env = {
      TURNBOX_HOST_BIND_ADDRESS: address,
      TURNBOX_ADVERTISE_ADDR: address,
      TURNBOX_HOST_TLS_CERTIFICATE: tls.certificatePath,
      TURNBOX_HOST_TLS_KEY: tls.keyPath,
      TURNBOX_POOL_SIZE: "2GiB",
      ...FLEET_BACKENDS,
    };
    hosts.push(stack.use(await startHost({ home: home.path, instanceId: `host-${index}`, port: PORT, launcher, env })));
  }
  server = stack.use(
    await startServer({
      home: home.path,
      env: {
        TURNBOX_PROVISIONER: "static",
        TURNBOX_STATIC_HOSTS: hosts.map(({ url }, index) => `host-${index}=${url}`).join(","),
        NODE_EXTRA_CA_CERTS: tls.certificatePath,
      },
    }),
  );
  await instancesReady(server, networks.length, START_MS);
  places = networks.flatMap((network, index) => {
    const host = hosts[index];
    return host === undefined ? [] : [{ network, host, instanceId: `host-${index}` }];
  });
}, START_MS);

afterAll(async () => {
  for (const { network } of places) await network.heal().catch(() => undefined);
  await stack.disposeAsync();
}, START_MS);

describe("a fleet of three hosts, each in a network of its own", () => {
  it(
    `loses nothing and makes nothing twice while one host is cut off for ${CUT_MS / 1000} s`,
    async () => {
      const labels = { run: randomUUID() };
      const before = await someOnEach(labels);
      const [cutOff] = before;
      const { network, instanceId } = placeOf(cutOff);

      const requests = Array.from({ length: 6 }, () => ({ labels, idempotencyKey: randomUUID() }));
      const creates = requests.map((request) => createAtLast(request));
      await network.cut();
      const cutAtMs = performance.now();
      const refusal = await getSandbox(server, cutOff.sandboxId).then(
        () => "answered",
        (thrown: unknown) => (thrown instanceof Refusal ? thrown.reason : String(thrown)),
      );
      expect(["HOST_UNREACHABLE", "DEADLINE_EXCEEDED"]).toContain(refusal);
      expect(performance.now() - cutAtMs).toBeLessThan(NOTICED_MS);
      const elsewhere = await createAtLast({ labels, idempotencyKey: randomUUID() });
      expect(elsewhere.instanceId).not.toBe(instanceId);
      expect((await listSandboxes(server, labels)).unreachableInstances).toEqual([instanceId]);
      await delay(Math.max(0, CUT_MS - (performance.now() - cutAtMs)));
      await network.heal();

      const made = await Promise.all(creates);
      await instancesReady(server, places.length, START_MS);
      await expectUnharmed(before);
      // The same key is the same sandbox, and there is no other one of it on any host.
      for (const [index, request] of requests.entries())
        expect((await createSandbox(server, request)).sandboxId).toBe(made[index]?.sandboxId);
      const expected = [...before, ...made, elsewhere].map(({ sandboxId }) => sandboxId);
      const listed = await listSandboxes(server, labels);
      expect(listed.unreachableInstances).toEqual([]);
      expect(listed.sandboxes.map(({ sandboxId }) => sandboxId).sort()).toEqual(expected.sort());
      await destroyAll(labels);
    },
    TEST_MS,
  );

  it(
    "goes on with a host whose network is slow",
    async () => {
      const labels = { run: randomUUID() };
      const before = await someOnEach(labels);
      const [slowed] = before;
      const { network } = placeOf(slowed);
      await network.slow(SLOW_BITS_PER_SECOND);
      try {
        const seen = await poll(
          "an answer",
          () => getSandbox(server, slowed.sandboxId).catch(() => undefined),
          NOTICED_MS,
        );
        expect(seen).toMatchObject({ sandboxId: slowed.sandboxId, state: "SESSION_STATE_ACTIVE" });
        const made = await createAtLast({ labels, idempotencyKey: randomUUID() });
        expect(await exec(made.sandboxId, "echo works")).toBe("works\n");
      } finally {
        await network.unslow();
      }
      await instancesReady(server, places.length, START_MS);
      await expectUnharmed(before);
      await destroyAll(labels);
    },
    TEST_MS,
  );

  it(
    "serves from the others while one host is killed, and finds its sandboxes again when it is back",
    async () => {
      const labels = { run: randomUUID() };
      const before = await someOnEach(labels);
      const [lost] = before;
      const { host, instanceId } = placeOf(lost);
      await host.kill();
      const elsewhere = await createAtLast({ labels, idempotencyKey: randomUUID() });
      expect(elsewhere.instanceId).not.toBe(instanceId);
      await expect(getSandbox(server, lost.sandboxId)).rejects.toMatchObject({ reason: "HOST_UNREACHABLE" });
      await host.start();
      await instancesReady(server, places.length, START_MS);
      await expectUnharmed(before);
      const expected = [...before, elsewhere].map(({ sandboxId }) => sandboxId);
      expect((await listSandboxes(server, labels)).sandboxes.map(({ sandboxId }) => sandboxId).sort()).toEqual(
        expected.sort(),
      );
      await destroyAll(labels);
    },
    TEST_MS,
  );
});
