import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Clock, createLog } from "@turnbox/core";
import type { Provisioner } from "../provisioner.ts";
import { createEc2Client } from "./ec2-provisioner-from-config.ts";
import type { Ec2Hardware, Ec2Options } from "./ec2-options.ts";
import { createEc2Provisioner } from "./ec2-provisioner.ts";

export const TAGS = { "turnbox-fleet": "f1" };

export const HARDWARE: Ec2Hardware = {
  image: "ami-12345678",
  instanceTypes: ["m7i.large"],
  subnets: ["subnet-a"],
  securityGroups: [],
  instanceProfile: null,
  launchTemplate: null,
  spot: "off",
  diskGib: 40,
  rootDevice: "/dev/xvda",
  kmsKey: null,
};

export interface ScriptedInstance {
  readonly ec2Id: string;
  readonly token: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly type: string;
  state: string;
  address: string;
  launchedAt: string;
  reason: string;
}

/** What happens to one request: `lost` is done and never answered, `unheard` is neither. */
export type Fault =
  | { readonly kind: "error"; readonly code: string; readonly status?: number }
  | { readonly kind: "lost" }
  | { readonly kind: "unheard" }
  | { readonly kind: "cut" }
  | { readonly kind: "body"; readonly body: string };

export interface Request {
  readonly action: string;
  readonly params: URLSearchParams;
}

/** A small EC2 on a loopback port: a map of machines, client tokens, pages, and faults for the next requests. */
export interface ScriptedEc2 extends AsyncDisposable {
  readonly url: string;
  readonly instances: Map<string, ScriptedInstance>;
  readonly requests: Request[];
  pageSize: number;
  /** Spot requests and scheduled events, as EC2 would write them. */
  spotXml: string;
  statusXml: string;
  /** The next request of the action meets the fault; further ones those given after it. */
  next(action: string, ...faults: readonly Fault[]): void;
  /** Describes show what is there now until they are thawed. */
  freeze(): void;
  thaw(): void;
  count(action: string): number;
  alive(): readonly ScriptedInstance[];
}

const item = (content: string): string => `<item>${content}</item>`;

function instanceXml(one: ScriptedInstance): string {
  const tags = Object.entries(one.tags).map(([key, value]) => item(`<key>${key}</key><value>${value}</value>`));
  const address = one.state === "running" ? `<privateIpAddress>${one.address}</privateIpAddress>` : "";
  const reason =
    one.reason === "" ? "" : `<stateReason><code>${one.reason}</code><message>${one.reason}</message></stateReason>`;
  return item(
    `<instanceId>${one.ec2Id}</instanceId><imageId>ami-12345678</imageId><instanceType>${one.type}</instanceType>` +
      `<instanceState><code>0</code><name>${one.state}</name></instanceState>${address}${reason}` +
      `<launchTime>${one.launchedAt}</launchTime><clientToken>${one.token}</clientToken><tagSet>${tags.join("")}</tagSet>`,
  );
}

const errorXml = (code: string): string =>
  `<Response><Errors><Error><Code>${code}</Code><Message>${code} was scripted</Message></Error></Errors><RequestID>r</RequestID></Response>`;

export async function startScriptedEc2(): Promise<ScriptedEc2> {
  const faults = new Map<string, Fault[]>();
  const requests: Request[] = [];
  const instances = new Map<string, ScriptedInstance>();
  let frozen: readonly ScriptedInstance[] | undefined;
  let made = 0;

  const run = (params: URLSearchParams): string => {
    const token = params.get("ClientToken") ?? "";
    let one = [...instances.values()].find((other) => other.token === token);
    if (one === undefined) {
      made += 1;
      const tags: Record<string, string> = {};
      for (let at = 1; params.has(`TagSpecification.1.Tag.${at}.Key`); at += 1) {
        tags[params.get(`TagSpecification.1.Tag.${at}.Key`) ?? ""] =
          params.get(`TagSpecification.1.Tag.${at}.Value`) ?? "";
      }
      one = {
        ec2Id: `i-${String(made).padStart(8, "0")}`,
        token,
        tags,
        type: params.get("InstanceType") ?? "",
        state: "pending",
        address: `10.0.0.${made}`,
        launchedAt: new Date(Date.UTC(2026, 0, 1) + made * 1000).toISOString(),
        reason: "",
      };
      instances.set(one.ec2Id, one);
    }
    return `<instancesSet>${instanceXml(one)}</instancesSet>`;
  };

  const describeInstances = (params: URLSearchParams): string => {
    const wanted: [string, string][] = [];
    for (let at = 1; params.has(`Filter.${at}.Name`); at += 1) {
      const name = params.get(`Filter.${at}.Name`) ?? "";
      if (name.startsWith("tag:")) wanted.push([name.slice(4), params.get(`Filter.${at}.Value.1`) ?? ""]);
    }
    const all = (frozen ?? [...instances.values()]).filter(({ tags }) => wanted.every(([k, v]) => tags[k] === v));
    const from = Number(params.get("NextToken") ?? 0);
    const page = all.slice(from, from + server.pageSize);
    const next = from + server.pageSize < all.length ? `<nextToken>${from + server.pageSize}</nextToken>` : "";
    return `<reservationSet>${page.map((one) => item(`<instancesSet>${instanceXml(one)}</instancesSet>`)).join("")}</reservationSet>${next}`;
  };

  const change = (params: URLSearchParams, state: string): string | undefined => {
    const one = instances.get(params.get("InstanceId.1") ?? "");
    if (one === undefined) return undefined;
    one.state = state;
    if (state === "pending") {
      one.address = `${one.address}0`;
      one.launchedAt = new Date(Date.parse(one.launchedAt) + 3_600_000).toISOString();
    }
    return `<instancesSet>${item(`<instanceId>${one.ec2Id}</instanceId>`)}</instancesSet>`;
  };

  const act = ({ action, params }: Request): string | undefined => {
    switch (action) {
      case "RunInstances":
        return run(params);
      case "DescribeInstances":
        return describeInstances(params);
      case "TerminateInstances":
        return change(params, "shutting-down");
      case "StopInstances":
        return change(params, "stopping");
      case "StartInstances":
        return change(params, "pending");
      case "DescribeSpotInstanceRequests":
        return `<spotInstanceRequestSet>${server.spotXml}</spotInstanceRequestSet>`;
      default:
        return `<instanceStatusSet>${server.statusXml}</instanceStatusSet>`;
    }
  };

  const answer = (response: ServerResponse, status: number, body: string): void => {
    response.writeHead(status, { "content-type": "text/xml" }).end(body);
  };

  /** A launch that was done is answered as it was, whatever has become of the room since. */
  const isAnsweredBefore = ({ action, params }: Request): boolean =>
    action === "RunInstances" &&
    faults.get(action)?.[0]?.kind === "error" &&
    [...instances.values()].some(({ token }) => token === params.get("ClientToken"));

  /** What a fault says instead of EC2; undefined if EC2 is to do its work. */
  const meet = (fault: Fault | undefined, response: ServerResponse): "met" | undefined => {
    switch (fault?.kind) {
      case "error":
        answer(response, fault.status ?? 400, errorXml(fault.code));
        return "met";
      case "cut":
        response.destroy();
        return "met";
      case "body":
        answer(response, 200, fault.body);
        return "met";
      case "unheard":
        return "met";
      case "lost":
      case undefined:
        return undefined;
    }
  };

  const handle = (request: Request, response: ServerResponse): void => {
    requests.push(request);
    const { action } = request;
    const fault = isAnsweredBefore(request) ? undefined : faults.get(action)?.shift();
    if (meet(fault, response) === "met") return;
    const body = act(request);
    if (fault?.kind === "lost") return;
    if (body === undefined) answer(response, 400, errorXml("InvalidInstanceID.NotFound"));
    else answer(response, 200, `<${action}Response><requestId>r</requestId>${body}</${action}Response>`);
  };

  const http = createServer((request, response) => {
    readBody(request).then(
      (text) => {
        const params = new URLSearchParams(text);
        handle({ action: params.get("Action") ?? "", params }, response);
      },
      () => response.destroy(),
    );
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));

  const server: ScriptedEc2 = {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    instances,
    requests,
    pageSize: 1000,
    spotXml: "",
    statusXml: "",
    next: (action, ...more) => void faults.set(action, [...(faults.get(action) ?? []), ...more]),
    freeze: () => {
      frozen = [...instances.values()].map((one) => ({ ...one }));
    },
    thaw: () => {
      frozen = undefined;
    },
    count: (action) => requests.filter((request) => request.action === action).length,
    alive: () => [...instances.values()].filter(({ state }) => state !== "shutting-down" && state !== "terminated"),
    [Symbol.asyncDispose]: async () => {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
  return server;
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

/** A clock whose sleeps take no time and pass all the same. */
export interface HurriedClock extends Clock {
  pass(ms: number): void;
}

export function createHurriedClock(): HurriedClock {
  let passedMs = 0;
  return {
    nowMs: () => Date.now() + passedMs,
    monotonicMs: () => passedMs,
    sleep: async (ms, { signal } = {}) => {
      signal?.throwIfAborted();
      passedMs += ms;
      await new Promise((resolve) => setImmediate(resolve));
      signal?.throwIfAborted();
    },
    pass: (ms) => {
      passedMs += ms;
    },
  };
}

export type AdapterOptions = Partial<Ec2Options> & { readonly requestTimeoutMs?: number };

/** The adapter on the SDK's own client, which finds the endpoint and its credentials where it finds them in service. */
export function provisionerAt(
  url: string,
  { requestTimeoutMs = 3000, ...options }: AdapterOptions & Pick<Ec2Options, "clock">,
): Provisioner {
  process.env["AWS_ENDPOINT_URL_EC2"] = url;
  process.env["AWS_ACCESS_KEY_ID"] = "test";
  process.env["AWS_SECRET_ACCESS_KEY"] = "test";
  return createEc2Provisioner({
    client: createEc2Client({ region: "eu-central-1", maxAttempts: 2, requestTimeoutMs }),
    tags: TAGS,
    hardware: HARDWARE,
    userDataFor: (instanceId) => `#cloud-config\n# ${instanceId}\n`,
    hostPort: 9100,
    hostAddress: "private_ip",
    logger: createLog({ name: "test", level: "silent", to: { write: () => undefined } }),
    random: () => 0.5,
    ...options,
  });
}
