import { readFileSync } from "node:fs";
import { type Clock, type ConfigOf, type Log, SandboxError } from "@turnbox/core";
import { EC2Client } from "@aws-sdk/client-ec2";
import type { EC2_SETTINGS } from "./ec2-settings.ts";
import type { Provisioner, Tags } from "../provisioner.ts";
import type { Ec2Hardware } from "./ec2-options.ts";
import { createEc2Provisioner } from "./ec2-provisioner.ts";
import { renderUserData } from "./user-data.ts";

export interface ComposeEc2Options {
  readonly config: ConfigOf<typeof EC2_SETTINGS>;
  readonly fleetId: string;
  readonly tags: Tags;
  /** What the hosts know the fleet's tokens by. */
  readonly publicKeyPem: string;
  readonly clock: Clock;
  readonly logger: Log;
  readonly random: () => number;
}

/** In the sources and in the build alike, this file is as far below the root. */
const SHIPPED_TEMPLATE = new URL("../../../../../deploy/aws/user-data.yaml", import.meta.url);

/** The provisioner that a configuration describes. Its user data is tried at once, and not at the first launch. */
export function createEc2ProvisionerFromConfig(options: ComposeEc2Options): Provisioner {
  const { config, fleetId, publicKeyPem } = options;
  const template = readTemplate(config.ec2UserDataTemplate ?? SHIPPED_TEMPLATE);
  const userDataFor = (instanceId: string): string =>
    renderUserData(template, { instanceId, fleetId, publicKeyPem, hostPort: config.ec2HostPort });
  userDataFor("trial");
  return createEc2Provisioner({
    client: createEc2Client({ region: config.ec2Region ?? undefined }),
    tags: options.tags,
    hardware: hardwareOf(config),
    userDataFor,
    hostPort: config.ec2HostPort,
    hostAddress: config.ec2HostAddress,
    clock: options.clock,
    logger: options.logger,
    random: options.random,
  });
}

function hardwareOf(config: ComposeEc2Options["config"]): Ec2Hardware {
  return {
    image: config.ec2Image,
    instanceTypes: config.ec2InstanceTypes,
    subnets: config.ec2Subnets,
    securityGroups: config.ec2SecurityGroups,
    instanceProfile: config.ec2InstanceProfile,
    launchTemplate: config.ec2LaunchTemplate,
    spot: config.ec2Spot,
    diskGib: config.ec2DiskGib,
    rootDevice: config.ec2RootDevice,
    kmsKey: config.ec2KmsKey,
  };
}

function readTemplate(file: string | URL): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new SandboxError("CONFIG_INVALID", `the template of the user data cannot be read: ${String(file)}`, {
      cause,
    });
  }
}

export interface Ec2ClientOptions {
  /** Undefined leaves it to the SDK: AWS_REGION, the profile, the machine. */
  readonly region: string | undefined;
  /** How long one try may take, after which its result is unknown. */
  readonly requestTimeoutMs?: number;
  /** Tries of one call; the SDK waits between them, longer each time and with jitter. */
  readonly maxAttempts?: number;
}

const CONNECTION_TIMEOUT_MS = 3000;
const REQUEST_TIMEOUT_MS = 20_000;
const MAX_ATTEMPTS = 4;

/**
 * The SDK's client with bounds on everything. Credentials and endpoint are the SDK's own business (instance role,
 * profile, AWS_ENDPOINT_URL_EC2): no secret passes through the configuration of Turnbox.
 */
export function createEc2Client(options: Ec2ClientOptions): EC2Client {
  return new EC2Client({
    ...(options.region === undefined ? {} : { region: options.region }),
    retryMode: "standard",
    maxAttempts: options.maxAttempts ?? MAX_ATTEMPTS,
    requestHandler: {
      connectionTimeout: CONNECTION_TIMEOUT_MS,
      requestTimeout: options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS,
      throwOnRequestTimeout: true,
    },
  });
}
