import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { Machine, Provisioner } from "../provisioner.ts";
import {
  type AdapterOptions,
  createHurriedClock,
  type Fault,
  HARDWARE,
  type HurriedClock,
  provisionerAt,
  type ScriptedEc2,
  type ScriptedInstance,
  startScriptedEc2,
  TAGS,
} from "./scripted-ec2.suite.ts";

const CALL = { signal: new AbortController().signal };
/** Short, because a test waits for it, and long enough for an answer on a busy machine. */
const LOST_AFTER_MS = 400;
const ALL = { tags: TAGS, states: [] };

let ec2: ScriptedEc2;
let clock: HurriedClock;
let provisioner: Provisioner;

beforeEach(async () => {
  ec2 = await startScriptedEc2();
  clock = createHurriedClock();
  provisioner = provisionerAt(ec2.url, { clock });
});
afterEach(async () => {
  await provisioner[Symbol.asyncDispose]();
  await ec2[Symbol.asyncDispose]();
});

const launch = (instanceId = "a"): Promise<Machine> => provisioner.launch({ instanceId, tags: TAGS }, CALL);
const states = async (): Promise<readonly string[]> =>
  (await provisioner.list(ALL, CALL)).map(({ instanceId, state }) => `${instanceId} ${state}`);
const only = (): ScriptedInstance => [...ec2.instances.values()][0]!;
const runs = () => ec2.requests.filter(({ action }) => action === "RunInstances").map(({ params }) => params);
const useOther = async (options: AdapterOptions): Promise<void> => {
  await provisioner[Symbol.asyncDispose]();
  provisioner = provisionerAt(ec2.url, { clock, ...options });
};

describe("a launch on EC2", () => {
  it("asks for a metadata service with tokens and one hop, an encrypted disk that goes, and tags on all of it (D35)", async () => {
    await launch();
    const asked = Object.fromEntries(runs()[0]!);
    expect(asked).toMatchObject({
      MinCount: "1",
      MaxCount: "1",
      ImageId: "ami-12345678",
      InstanceType: "m7i.large",
      SubnetId: "subnet-a",
      InstanceInitiatedShutdownBehavior: "stop",
      "MetadataOptions.HttpTokens": "required",
      "MetadataOptions.HttpPutResponseHopLimit": "1",
      "BlockDeviceMapping.1.DeviceName": "/dev/xvda",
      "BlockDeviceMapping.1.Ebs.Encrypted": "true",
      "BlockDeviceMapping.1.Ebs.DeleteOnTermination": "true",
      "BlockDeviceMapping.1.Ebs.VolumeSize": "40",
      "TagSpecification.1.ResourceType": "instance",
      "TagSpecification.2.ResourceType": "volume",
    });
    for (const at of [1, 2]) {
      const tags = Array.from({ length: 3 }, (_, nth) => [
        asked[`TagSpecification.${at}.Tag.${nth + 1}.Key`],
        asked[`TagSpecification.${at}.Tag.${nth + 1}.Value`],
      ]);
      expect(Object.fromEntries(tags)).toEqual({ ...TAGS, "turnbox-instance": "a", Name: "turnbox-a" });
    }
    expect(asked["ClientToken"]).toMatch(/^[0-9a-f]{64}$/);
  });

  it("leaves to a launch template what is not configured, and nothing that keeps machines safe (D35)", async () => {
    const bare = { ...HARDWARE, image: "", instanceTypes: [], subnets: [], launchTemplate: "lt-0abc:7" };
    await useOther({ hardware: bare });
    await launch();
    const asked = Object.fromEntries(runs()[0]!);
    expect(asked).toMatchObject({
      "LaunchTemplate.LaunchTemplateId": "lt-0abc",
      "LaunchTemplate.Version": "7",
      "MetadataOptions.HttpTokens": "required",
      "BlockDeviceMapping.1.Ebs.Encrypted": "true",
    });
    for (const left of ["ImageId", "InstanceType", "SubnetId"]) expect(asked).not.toHaveProperty(left);
  });

  it("whose answer was lost is asked for again under the same token, and is one machine", async () => {
    await useOther({ requestTimeoutMs: LOST_AFTER_MS });
    ec2.next("RunInstances", { kind: "lost" }, { kind: "lost" }, { kind: "lost" });
    await expect(launch()).resolves.toMatchObject({ instanceId: "a", state: "pending" });
    expect(new Set(runs().map((params) => params.get("ClientToken"))).size).toBe(1);
    expect(ec2.instances.size).toBe(1);
  });

  it("whose answer stays lost tells so, and the next one asks for the same offer and no other", async () => {
    await useOther({
      requestTimeoutMs: LOST_AFTER_MS,
      launchPatienceMs: 1,
      hardware: { ...HARDWARE, instanceTypes: ["m7i.large", "m6i.large"] },
    });
    ec2.next(
      "RunInstances",
      { kind: "error", code: "InsufficientInstanceCapacity" },
      { kind: "lost" },
      { kind: "lost" },
    );
    ec2.freeze();
    await expect(launch()).rejects.toMatchObject({ reason: "PROVIDER_UNAVAILABLE", admitted: "unknown" });
    await launch();
    expect(runs().map((params) => params.get("InstanceType"))).toEqual([
      "m7i.large",
      "m6i.large",
      "m6i.large",
      "m6i.large",
    ]);
    expect(ec2.instances.size).toBe(1);
  });

  it("whose first answer was lost stays unknown, whatever EC2 refuses after it", async () => {
    await useOther({ requestTimeoutMs: LOST_AFTER_MS, launchPatienceMs: 1500 });
    ec2.freeze();
    ec2.next(
      "RunInstances",
      { kind: "unheard" },
      { kind: "unheard" },
      { kind: "error", code: "UnauthorizedOperation" },
    );
    await expect(launch()).rejects.toMatchObject({ reason: "PROVIDER_UNAVAILABLE", admitted: "unknown" });
    await launch();
    expect(new Set(runs().map((params) => params.get("ClientToken"))).size).toBe(1);
  });

  it("that is cut off or meets a broken EC2 goes on until it is known", async () => {
    ec2.next("RunInstances", { kind: "cut" }, { kind: "error", code: "InternalError", status: 500 });
    ec2.next("RunInstances", { kind: "body", body: "<RunInstancesResponse><instancesSet/></RunInstancesResponse>" });
    await launch();
    expect(runs()).toHaveLength(4);
    expect(ec2.instances.size).toBe(1);
  });

  it("that is throttled waits and is made once", async () => {
    const throttled = { kind: "error", code: "RequestLimitExceeded", status: 503 } as const;
    ec2.next("RunInstances", throttled, throttled, throttled);
    await launch();
    expect(runs()).toHaveLength(4);
    expect(ec2.instances.size).toBe(1);
  });

  it("tries other zones, then other types, where there is no room", async () => {
    const hardware = { ...HARDWARE, instanceTypes: ["m7i.large", "m6i.large"], subnets: ["subnet-a", "subnet-b"] };
    await useOther({ hardware });
    const full = { kind: "error", code: "InsufficientInstanceCapacity", status: 500 } as const;
    ec2.next(
      "RunInstances",
      full,
      { kind: "error", code: "Unsupported" },
      { kind: "error", code: "VcpuLimitExceeded" },
    );
    await launch();
    expect(runs().map((params) => `${params.get("InstanceType")} ${params.get("SubnetId")}`)).toEqual(
      expect.arrayContaining(["m7i.large subnet-a", "m7i.large subnet-b", "m6i.large subnet-a"]),
    );
    expect(new Set(runs().map((params) => params.get("ClientToken"))).size).toBeGreaterThan(2);
    expect(ec2.instances.size).toBe(1);
  });

  it("with no room anywhere says when to ask again, and leaves nothing behind", async () => {
    const full = { kind: "error", code: "InsufficientInstanceCapacity" } as const;
    ec2.next("RunInstances", full);
    await expect(launch()).rejects.toMatchObject({ reason: "FLEET_EXHAUSTED", admitted: "no", retryAfterMs: 30_000 });
    expect(ec2.instances.size).toBe(0);
    await expect(launch()).resolves.toMatchObject({ state: "pending" });
  });

  it("prefers spot, tags the request for it, and falls back to an ordinary machine", async () => {
    await useOther({ hardware: { ...HARDWARE, spot: "preferred" } });
    ec2.next("RunInstances", { kind: "error", code: "SpotMaxPriceTooLow" });
    await launch();
    const [spot, ordinary] = runs().map((params) => Object.fromEntries(params));
    expect(spot).toMatchObject({
      "InstanceMarketOptions.MarketType": "spot",
      "TagSpecification.3.ResourceType": "spot-instances-request",
    });
    expect(ordinary).not.toHaveProperty(["InstanceMarketOptions.MarketType"]);
    expect(provisioner.capabilities.stopStart).toBe("unsupported");
  });

  it("under a token that was used for another configuration takes the machine that is there", async () => {
    await launch();
    await useOther({ hardware: { ...HARDWARE, diskGib: 80 } });
    ec2.next("DescribeInstances", { kind: "body", body: "<DescribeInstancesResponse/>" });
    ec2.next("RunInstances", { kind: "error", code: "IdempotentParameterMismatch" });
    await expect(launch()).resolves.toMatchObject({ instanceId: "a" });
    expect(ec2.instances.size).toBe(1);
  });

  it("under such a token makes nothing where no machine shows", async () => {
    ec2.next("RunInstances", { kind: "error", code: "IdempotentParameterMismatch" });
    await expect(launch()).rejects.toMatchObject({ reason: "IDEMPOTENCY_CONFLICT" });
    expect(ec2.instances.size).toBe(0);
  });

  it.each([
    ["InvalidAMIID.NotFound", "CONFIG_INVALID"],
    ["UnauthorizedOperation", "PROVIDER_UNAVAILABLE"],
  ])("that EC2 refuses with %s is not asked for again", async (code, reason) => {
    ec2.next("RunInstances", { kind: "error", code });
    await expect(launch()).rejects.toMatchObject({ reason, admitted: "no" });
    expect(runs()).toHaveLength(1);
  });

  it("goes on when its caller leaves, and a second caller joins it", async () => {
    await useOther({ requestTimeoutMs: LOST_AFTER_MS });
    ec2.next("RunInstances", { kind: "lost" });
    const leaving = new AbortController();
    const first = provisioner.launch({ instanceId: "a", tags: TAGS }, { signal: leaving.signal });
    const second = launch();
    leaving.abort(new Error("left"));
    await expect(first).rejects.toThrow("left");
    await expect(second).resolves.toMatchObject({ state: "pending" });
    expect(ec2.instances.size).toBe(1);
  });

  it("of a process that comes after this one finds the machine and makes no other", async () => {
    await launch();
    await useOther({});
    await launch();
    expect(ec2.instances.size).toBe(1);
    expect(runs()).toHaveLength(1);
  });

  it("of a process that comes after this one asks under the same token, should the machine not show yet", async () => {
    ec2.freeze();
    await launch();
    await useOther({});
    await launch();
    expect(runs()).toHaveLength(2);
    expect(ec2.instances.size).toBe(1);
  });

  it("refuses tags that contradict the fleet's", async () => {
    const tags = { "turnbox-fleet": "f2" };
    await expect(provisioner.launch({ instanceId: "a", tags }, CALL)).rejects.toMatchObject({
      reason: "INVALID_ARGUMENT",
    });
  });

  it("never brings an instance back that has ended", async () => {
    await launch();
    only().state = "terminated";
    await expect(launch()).rejects.toMatchObject({ reason: "INVALID_STATE" });
  });
});

describe("what EC2 shows", () => {
  it("is read to the last page (D34)", async () => {
    ec2.pageSize = 2;
    for (const id of ["e", "d", "c", "b", "a"]) await launch(id);
    expect(await states()).toEqual(["a", "b", "c", "d", "e"].map((id) => `${id} pending`));
    const pages = ec2.requests.filter(
      ({ action, params }) => action === "DescribeInstances" && params.has("NextToken"),
    );
    expect(pages.map(({ params }) => params.get("NextToken"))).toEqual(expect.arrayContaining(["2", "4"]));
    expect(pages.every(({ params }) => params.get("Filter.1.Name") === "tag:turnbox-fleet")).toBe(true);
  });

  it("is an error where a page fails, and never half of the fleet (D34)", async () => {
    ec2.pageSize = 1;
    await launch("a");
    await launch("b");
    await useOther({});
    const seen = ec2.count("DescribeInstances");
    ec2.next("DescribeInstances", { kind: "body", body: page("x", "1") });
    ec2.next("DescribeInstances", { kind: "error", code: "InternalError", status: 500 });
    ec2.next("DescribeInstances", { kind: "error", code: "InternalError", status: 500 });
    await expect(provisioner.list(ALL, CALL)).rejects.toMatchObject({ reason: "PROVIDER_UNAVAILABLE" });
    expect(ec2.count("DescribeInstances") - seen).toBe(3);
  });

  it("is asked for by the fleet's tags alone, and what carries none of its ids is not the fleet's (D33)", async () => {
    await launch();
    const foreign = { ...only(), ec2Id: "i-foreign", tags: TAGS };
    ec2.instances.set(foreign.ec2Id, foreign);
    expect(await states()).toEqual(["a pending"]);
    for (const { action, params } of ec2.requests) {
      if (action === "DescribeInstances")
        expect(Object.fromEntries(params)).toMatchObject({ "Filter.1.Name": expect.stringMatching(/^tag:/) });
    }
    expect(await provisioner.list({ tags: { "turnbox-fleet": "f2" }, states: [] }, CALL)).toEqual([]);
    expect(() => provisionerAt(ec2.url, { clock, tags: {} })).toThrow(
      expect.objectContaining({ reason: "INVALID_ARGUMENT" }),
    );
  });

  it("lacks a new machine for a while, which is there all the same", async () => {
    ec2.freeze();
    await launch();
    expect(await states()).toEqual(["a pending"]);
    await expect(provisioner.describe("a", CALL)).resolves.toMatchObject({ state: "pending" });
    clock.pass(130_000);
    expect(await states()).toEqual([]);
    await expect(provisioner.describe("a", CALL)).rejects.toMatchObject({ reason: "INSTANCE_NOT_FOUND" });
  });

  it("may be old, and never takes a machine back in its life", async () => {
    await launch();
    only().state = "running";
    expect(await states()).toEqual(["a running"]);
    only().state = "pending";
    expect(await states()).toEqual(["a running"]);
    only().state = "terminated";
    expect(await provisioner.list({ ...ALL, states: ["terminated"] }, CALL)).toHaveLength(1);
    clock.pass(1_000_000);
    only().state = "running";
    expect(await states()).toEqual([]);
  });

  it("tells where a host is only while its machine runs, and why it ended by itself", async () => {
    await launch();
    only().state = "running";
    expect((await provisioner.describe("a", CALL)).url).toBe("https://10.0.0.1:9100");
    only().state = "terminated";
    only().reason = "Server.InsufficientInstanceCapacity";
    expect(await provisioner.describe("a", CALL)).toMatchObject({
      url: undefined,
      problem: "Server.InsufficientInstanceCapacity",
    });
  });

  it("is one machine for an id, and a second one under it is reported and ended with it", async () => {
    await launch();
    const twin = { ...only(), ec2Id: "i-twin", launchedAt: new Date(Date.UTC(2026, 5, 1)).toISOString() };
    ec2.instances.set(twin.ec2Id, twin);
    const [machine, ...others] = await provisioner.list(ALL, CALL);
    expect(others).toEqual([]);
    expect(machine?.problem).toContain("i-twin");
    await provisioner.terminate("a", CALL);
    expect(ec2.alive()).toEqual([]);
  });

  it("is waited for no longer than its caller wants", async () => {
    ec2.next("DescribeInstances", { kind: "unheard" }, { kind: "unheard" });
    const startMs = performance.now();
    await expect(provisioner.list(ALL, { signal: AbortSignal.timeout(50) })).rejects.toMatchObject({
      name: "TimeoutError",
    });
    expect(performance.now() - startMs).toBeLessThan(1000);
  });
});

describe("notices of EC2", () => {
  const statusOf = (id: string, code: string, description: string): string =>
    `<item><instanceId>${id}</instanceId><eventsSet><item><code>${code}</code><description>${description}</description>` +
    `<notBefore>2026-12-01T00:00:00.000Z</notBefore></item></eventsSet></item>`;

  it("tell that a spot machine is taken back two minutes later", async () => {
    await useOther({ hardware: { ...HARDWARE, spot: "only" } });
    await launch();
    ec2.spotXml = `<item><spotInstanceRequestId>sir-1</spotInstanceRequestId><instanceId>${only().ec2Id}</instanceId><status><code>marked-for-termination</code><updateTime>2026-11-16T12:00:00.000Z</updateTime></status></item>`;
    const [machine] = await provisioner.list(ALL, CALL);
    expect(machine?.interruption).toEqual({ action: "terminate", atMs: Date.UTC(2026, 10, 16, 12, 2) });
    const asked = ec2.requests.find(({ action }) => action === "DescribeSpotInstanceRequests");
    expect(Object.fromEntries(asked!.params)).toMatchObject({ "Filter.1.Name": "tag:turnbox-fleet" });
    await expect(provisioner.stop("a", CALL)).rejects.toMatchObject({ reason: "UNIMPLEMENTED" });
  });

  it("tell that a machine is to be retired, unless that is over", async () => {
    await launch();
    ec2.statusXml = statusOf(only().ec2Id, "instance-retirement", "The instance is running on degraded hardware");
    expect((await provisioner.list(ALL, CALL))[0]?.interruption).toEqual({
      action: "stop",
      atMs: Date.UTC(2026, 11, 1),
    });
    ec2.statusXml = statusOf(only().ec2Id, "instance-retirement", "[Completed] The instance was running");
    expect((await provisioner.list(ALL, CALL))[0]?.interruption).toBeUndefined();
    ec2.statusXml = statusOf(only().ec2Id, "instance-reboot", "reboot");
    expect((await provisioner.list(ALL, CALL))[0]?.interruption).toBeUndefined();
  });

  it("that cannot be read leave the list as it is, with what was known", async () => {
    await launch();
    ec2.statusXml = statusOf(only().ec2Id, "instance-stop", "stop");
    await provisioner.list(ALL, CALL);
    ec2.next("DescribeInstanceStatus", { kind: "error", code: "UnauthorizedOperation", status: 403 });
    expect((await provisioner.list(ALL, CALL))[0]?.interruption?.action).toBe("stop");
  });
});

describe("the end of a machine on EC2", () => {
  it("is asked for again while EC2 does not know a machine that it has just made", async () => {
    await launch();
    const notFound = { kind: "error", code: "InvalidInstanceID.NotFound" } as const;
    ec2.freeze();
    ec2.next("TerminateInstances", notFound, notFound);
    await provisioner.terminate("a", CALL);
    expect(ec2.count("TerminateInstances")).toBe(3);
    expect(ec2.alive()).toEqual([]);
  });

  it("is over where EC2 does not know the machine after the grace time", async () => {
    await launch();
    ec2.instances.clear();
    await provisioner.terminate("a", CALL);
    expect(clock.monotonicMs()).toBeGreaterThan(100_000);
    expect(ec2.count("TerminateInstances")).toBeGreaterThan(3);
  });

  it("is not taken back by an old answer, and is asked for again where EC2 shows the machine alive", async () => {
    await launch();
    only().state = "running";
    ec2.freeze();
    await provisioner.terminate("a", CALL);
    expect(await states()).toEqual(["a terminating"]);
    expect(ec2.count("TerminateInstances")).toBe(2);
    ec2.thaw();
    only().state = "terminated";
    expect(await states()).toEqual([]);
  });

  it("reaches a machine that shows only after it was ended", async () => {
    await launch();
    await useOther({});
    ec2.next("DescribeInstances", { kind: "body", body: "<DescribeInstancesResponse/>" });
    await provisioner.terminate("a", CALL);
    expect(ec2.alive()).toHaveLength(1);
    expect(await states()).toEqual(["a terminating"]);
    expect(ec2.alive()).toEqual([]);
  });

  it("that EC2 does not permit fail and say so", async () => {
    await launch();
    ec2.next("TerminateInstances", { kind: "error", code: "OperationNotPermitted" });
    await expect(provisioner.terminate("a", CALL)).rejects.toMatchObject({ reason: "CONFIG_INVALID" });
    expect(await states()).toEqual(["a pending"]);
  });
});

describe("launches and ends under faults of all kinds", () => {
  const SEED = 20261116;
  it(`leave one machine for each id, and none after the end (seed ${SEED})`, async () => {
    const random = seeded(SEED);
    const ids = Array.from({ length: 12 }, (_, at) => `m${at}`);
    const faults: readonly Fault[] = [
      { kind: "lost" },
      { kind: "cut" },
      { kind: "error", code: "InternalError", status: 500 },
      { kind: "error", code: "InsufficientInstanceCapacity", status: 500 },
    ];
    const some = (count: number): Fault[] =>
      Array.from({ length: count }, () => faults[Math.floor(random() * faults.length)]!);
    const insist = async (work: () => Promise<unknown>): Promise<void> => {
      for (let tries = 0; tries < 40; tries += 1) {
        const isDone = await work().then(
          () => true,
          () => false,
        );
        if (isDone) return;
      }
      throw new Error("it never came to an end");
    };
    const hardware = { ...HARDWARE, instanceTypes: ["m7i.large", "m6i.large"], subnets: ["subnet-a", "subnet-b"] };
    await useOther({ hardware, launchPatienceMs: 1, requestTimeoutMs: LOST_AFTER_MS, random });
    ec2.next("RunInstances", ...some(16));
    ec2.next("DescribeInstances", ...some(4));
    ec2.freeze();
    await Promise.all(ids.map((id) => insist(() => launch(id))));
    ec2.thaw();
    const byId = ec2.alive().map(({ tags }) => tags["turnbox-instance"]);
    expect(byId.toSorted()).toEqual(ids.toSorted());
    ec2.next("TerminateInstances", ...some(6), { kind: "error", code: "InvalidInstanceID.NotFound" });
    await Promise.all(ids.map((id) => insist(() => provisioner.terminate(id, CALL))));
    expect(ec2.alive()).toEqual([]);
  });
});

describe("stop and start on EC2", () => {
  it("keep the id and give another address", async () => {
    await launch();
    only().state = "running";
    await provisioner.describe("a", CALL);
    expect(await provisioner.stop("a", CALL)).toMatchObject({ state: "stopping", url: undefined });
    only().state = "stopped";
    expect(await states()).toEqual(["a stopped"]);
    expect(await provisioner.start("a", CALL)).toMatchObject({ state: "pending", url: undefined });
    only().state = "running";
    expect(await provisioner.describe("a", CALL)).toMatchObject({ state: "running", url: "https://10.0.0.10:9100" });
  });

  it("are not taken back by old answers", async () => {
    await launch();
    only().state = "running";
    ec2.freeze();
    await provisioner.stop("a", CALL);
    expect(await states()).toEqual(["a stopping"]);
    ec2.thaw();
    only().state = "stopped";
    expect(await states()).toEqual(["a stopped"]);
    ec2.freeze();
    await provisioner.start("a", CALL);
    expect(await states()).toEqual(["a pending"]);
    ec2.thaw();
    only().state = "running";
    expect(await states()).toEqual(["a running"]);
  });

  it("wait for a stop before the start", async () => {
    await launch();
    only().state = "running";
    await provisioner.stop("a", CALL);
    const starting = provisioner.start("a", CALL);
    only().state = "stopped";
    await expect(starting).resolves.toMatchObject({ state: "pending" });
  });

  it("tell that there is no room to start in", async () => {
    await launch();
    only().state = "stopped";
    ec2.next("StartInstances", { kind: "error", code: "InsufficientInstanceCapacity" });
    await expect(provisioner.start("a", CALL)).rejects.toMatchObject({ reason: "FLEET_EXHAUSTED" });
  });
});

/** Numbers from 0 to 1 that are the same for the same seed. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function page(id: string, next: string): string {
  return `<DescribeInstancesResponse><reservationSet><item><instancesSet><item><instanceId>${id}</instanceId></item></instancesSet></item></reservationSet><nextToken>${next}</nextToken></DescribeInstancesResponse>`;
}
