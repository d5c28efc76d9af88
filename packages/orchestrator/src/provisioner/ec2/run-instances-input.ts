import type {
  BlockDeviceMapping,
  LaunchTemplateSpecification,
  RunInstancesCommandInput,
  Tag,
  TagSpecification,
} from "@aws-sdk/client-ec2";
import { invalidArgument } from "@turnbox/core";
import type { Tags } from "../provisioner.ts";
import { type Ec2Hardware, INSTANCE_TAG } from "./ec2-options.ts";
import { clientTokenOf, type LaunchOffer } from "./launch-offers.ts";

export interface MachineWish {
  readonly instanceId: string;
  /** The fleet's marks and those of the launch. */
  readonly tags: Tags;
  readonly image: string;
  readonly userData: string;
}

/** EC2's own limit, before the encoding. */
const MAX_USER_DATA_BYTES = 16 * 1024;

/**
 * The request for exactly one machine: metadata only with a session token and never beyond the machine itself, an
 * encrypted disk that goes with the machine, and the fleet's marks on all that is made.
 */
export function runInstancesInput(
  wish: MachineWish,
  offer: LaunchOffer,
  hardware: Ec2Hardware,
): RunInstancesCommandInput {
  return {
    MinCount: 1,
    MaxCount: 1,
    ClientToken: clientTokenOf(wish.tags, wish.instanceId, offer),
    UserData: encodeUserData(wish.userData),
    MetadataOptions: {
      HttpEndpoint: "enabled",
      HttpTokens: "required",
      HttpPutResponseHopLimit: 1,
      InstanceMetadataTags: "disabled",
    },
    BlockDeviceMappings: [rootVolume(hardware)],
    TagSpecifications: tagSpecifications(wish, offer),
    ...(wish.image === "" ? {} : { ImageId: wish.image }),
    ...(hardware.launchTemplate === null ? {} : { LaunchTemplate: launchTemplate(hardware.launchTemplate) }),
    ...(offer.instanceType === undefined ? {} : { InstanceType: offer.instanceType as never }),
    ...(offer.subnet === undefined ? {} : { SubnetId: offer.subnet }),
    ...(hardware.securityGroups.length === 0 ? {} : { SecurityGroupIds: [...hardware.securityGroups] }),
    ...profile(hardware.instanceProfile),
    ...market(offer),
  };
}

function encodeUserData(userData: string): string {
  const bytes = Buffer.from(userData);
  if (bytes.length > MAX_USER_DATA_BYTES) throw invalidArgument("user data", "must be at most 16 KiB");
  return bytes.toString("base64");
}

function rootVolume({ rootDevice, diskGib, kmsKey }: Ec2Hardware): BlockDeviceMapping {
  return {
    DeviceName: rootDevice,
    Ebs: {
      Encrypted: true,
      DeleteOnTermination: true,
      VolumeType: "gp3",
      ...(diskGib === null ? {} : { VolumeSize: diskGib }),
      ...(kmsKey === null ? {} : { KmsKeyId: kmsKey }),
    },
  };
}

function tagSpecifications(wish: MachineWish, offer: LaunchOffer): TagSpecification[] {
  const all = { ...wish.tags, [INSTANCE_TAG]: wish.instanceId, Name: `turnbox-${wish.instanceId}` };
  const tags: Tag[] = Object.entries(all).map(([key, value]) => ({ Key: key, Value: value }));
  const made = ["instance", "volume", ...(offer.market === "spot" ? ["spot-instances-request"] : [])] as const;
  return made.map((type) => ({ ResourceType: type as "instance", Tags: tags }));
}

function launchTemplate(raw: string): LaunchTemplateSpecification {
  const [name = "", version] = raw.split(":");
  return {
    ...(name.startsWith("lt-") ? { LaunchTemplateId: name } : { LaunchTemplateName: name }),
    ...(version === undefined ? {} : { Version: version }),
  };
}

function profile(name: string | null): Pick<RunInstancesCommandInput, "IamInstanceProfile"> {
  if (name === null) return {};
  return { IamInstanceProfile: name.startsWith("arn:") ? { Arn: name } : { Name: name } };
}

/** A machine that shuts itself down keeps its disk, if it can be started again. */
function market(
  offer: LaunchOffer,
): Pick<RunInstancesCommandInput, "InstanceMarketOptions" | "InstanceInitiatedShutdownBehavior"> {
  if (offer.market === "on_demand") return { InstanceInitiatedShutdownBehavior: "stop" };
  return {
    InstanceMarketOptions: {
      MarketType: "spot",
      SpotOptions: { SpotInstanceType: "one-time", InstanceInterruptionBehavior: "terminate" },
    },
  };
}
