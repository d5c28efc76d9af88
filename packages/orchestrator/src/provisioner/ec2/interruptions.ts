import {
  DescribeInstanceStatusCommand,
  DescribeSpotInstanceRequestsCommand,
  type EC2Client,
  type EventCode,
  type Filter,
  type InstanceStatus,
  type InstanceStatusEvent,
  type SpotInstanceRequest,
} from "@aws-sdk/client-ec2";
import type { Interruption } from "../provisioner.ts";
import { allPages } from "./pages.ts";

/** The time between the notice of a spot machine's end and the end. */
export const SPOT_NOTICE_MS = 120_000;

const SPOT_ACTIONS: Readonly<Record<string, Interruption["action"]>> = {
  "marked-for-termination": "terminate",
  "marked-for-stop": "stop",
};

/** Events after which a machine with a volume is stopped; a reboot brings it back by itself. */
const STOPPING_EVENTS: readonly EventCode[] = ["instance-stop", "instance-retirement"];
/** How EC2 begins the description of an event that is over. */
const OVER = /^\[(Completed|Canceled)\]/;

export interface InterruptionQuestion {
  readonly client: EC2Client;
  /** What the fleet's own spot requests are known by; never empty. */
  readonly filters: readonly Filter[];
  readonly hasSpot: boolean;
}

/** What EC2 is about to take back, by its own ids of machines. */
export async function readInterruptions(
  { client, filters, hasSpot }: InterruptionQuestion,
  { signal }: { readonly signal: AbortSignal },
): Promise<ReadonlyMap<string, Interruption>> {
  const [requests, statuses] = await Promise.all([
    !hasSpot
      ? []
      : allPages(
          (NextToken) =>
            client.send(
              new DescribeSpotInstanceRequestsCommand({ Filters: [...filters], MaxResults: 1000, NextToken }),
              {
                abortSignal: signal,
              },
            ),
          (page) => page.SpotInstanceRequests ?? [],
        ),
    allPages(
      (NextToken) =>
        client.send(
          new DescribeInstanceStatusCommand({
            Filters: [{ Name: "event.code", Values: [...STOPPING_EVENTS] }],
            IncludeAllInstances: true,
            MaxResults: 1000,
            NextToken,
          }),
          { abortSignal: signal },
        ),
      (page) => page.InstanceStatuses ?? [],
    ),
  ]);
  return new Map([...statuses.flatMap(fromStatus), ...requests.flatMap(fromSpotRequest)]);
}

function fromSpotRequest(request: SpotInstanceRequest): readonly (readonly [string, Interruption])[] {
  const action = SPOT_ACTIONS[request.Status?.Code ?? ""];
  if (action === undefined || request.InstanceId === undefined) return [];
  return [[request.InstanceId, { action, atMs: (request.Status?.UpdateTime?.getTime() ?? 0) + SPOT_NOTICE_MS }]];
}

function fromStatus({
  InstanceId: id,
  Events: events = [],
}: InstanceStatus): readonly (readonly [string, Interruption])[] {
  const dueMs = events.filter(isAhead).map(({ NotBefore }) => NotBefore?.getTime() ?? 0);
  return id === undefined || dueMs.length === 0 ? [] : [[id, { action: "stop", atMs: Math.min(...dueMs) }]];
}

function isAhead({ Code: code, Description: description = "" }: InstanceStatusEvent): boolean {
  return code !== undefined && STOPPING_EVENTS.includes(code) && !OVER.test(description);
}
