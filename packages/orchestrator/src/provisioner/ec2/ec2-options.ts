import type { EC2Client } from "@aws-sdk/client-ec2";
import type { Clock, Log } from "@turnbox/core";
import type { Tags } from "../provisioner.ts";

/**
 * What machines are made of. If there is a launch template, whatever is empty or null here is its to say; the
 * metadata service, the encryption of the disk and the tags are never left to it.
 */
export interface Ec2Hardware {
  /** The AMI; empty only with a launch template. */
  readonly image: string;
  /** In order of preference: the next one is tried if there is no room for the one before. */
  readonly instanceTypes: readonly string[];
  /** In order of preference, for each type; a subnet is in one zone. */
  readonly subnets: readonly string[];
  readonly securityGroups: readonly string[];
  /** Name or ARN. Sandboxes cannot reach it, and a host needs none. */
  readonly instanceProfile: string | null;
  /** Id (`lt-...`) or name, and after a colon its version; the default version if there is none. */
  readonly launchTemplate: string | null;
  /** `preferred` takes ordinary machines if no spot machine is to be had. Spot machines cannot be stopped. */
  readonly spot: "off" | "preferred" | "only";
  /** The size of the root volume; null means as large as the image. */
  readonly diskGib: number | null;
  /** The name the image has for its root volume. */
  readonly rootDevice: string;
  /** The key that the volume is encrypted with; null means the account's own for EBS. */
  readonly kmsKey: string | null;
}

export interface Ec2Options {
  /** Ended together with the provisioner. */
  readonly client: EC2Client;
  /** The marks of the fleet, on each machine and in each question; never empty. */
  readonly tags: Tags;
  readonly hardware: Ec2Hardware;
  /** The user data of a new machine. All who may describe machines can read it: no secrets. */
  readonly userDataFor: (instanceId: string) => string;
  /** The port that sandbox-hosts listen on, with TLS. */
  readonly hostPort: number;
  /** Which name of a machine its host is called by: what its certificate is made out to. */
  readonly hostAddress: "private_ip" | "private_dns";
  readonly clock: Clock;
  readonly logger: Log;
  /** From 0 to 1: spreads what many would otherwise ask at the same moment. */
  readonly random: () => number;
  /**
   * For how long EC2 may not know of an order that it has accepted: a new machine that is not found is there all the same, and an
   * older state than the one known is not believed.
   */
  readonly graceMs?: number;
  /** For how long a launch whose result is unknown is asked for again before its caller gets an error. */
  readonly launchPatienceMs?: number;
}

export const GRACE_MS = 120_000;
export const LAUNCH_PATIENCE_MS = 120_000;
/** The tag that holds the fleet's own id of a machine. */
export const INSTANCE_TAG = "turnbox-instance";
