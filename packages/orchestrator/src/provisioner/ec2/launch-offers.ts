import { createHash } from "node:crypto";
import type { Tags } from "../provisioner.ts";
import type { Ec2Hardware } from "./ec2-options.ts";

/** One way to make a machine. Undefined is the launch template's to say. */
export interface LaunchOffer {
  readonly instanceType: string | undefined;
  readonly subnet: string | undefined;
  readonly market: "spot" | "on_demand";
}

/** All ways in order: spot before ordinary machines, then types, then zones. */
export function listOffers(hardware: Ec2Hardware): readonly LaunchOffer[] {
  const markets = { off: ["on_demand"], preferred: ["spot", "on_demand"], only: ["spot"] } as const;
  const orNone = (values: readonly string[]): readonly (string | undefined)[] =>
    values.length === 0 ? [undefined] : values;
  return markets[hardware.spot].flatMap((market) =>
    orNone(hardware.instanceTypes).flatMap((instanceType) =>
      orNone(hardware.subnets).map((subnet) => ({ instanceType, subnet, market })),
    ),
  );
}

/**
 * What makes two requests for the same machine one request: it follows from the fleet, the instance's id and the offer
 * alone, so that a process that comes after this one asks under the same token.
 */
export function clientTokenOf(tags: Tags, instanceId: string, offer: LaunchOffer): string {
  const fleet = Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1));
  const { instanceType = "", subnet = "", market } = offer;
  return createHash("sha256")
    .update(JSON.stringify([fleet, instanceId, instanceType, subnet, market]))
    .digest("hex");
}

export function describeOffer({ instanceType, subnet, market }: LaunchOffer): string {
  return [instanceType ?? "the template's type", subnet ?? "the template's subnet", market].join(" in ");
}
