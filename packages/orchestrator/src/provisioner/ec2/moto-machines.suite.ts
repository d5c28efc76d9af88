import {
  CreateSubnetCommand,
  CreateVpcCommand,
  DescribeInstancesCommand,
  EC2Client,
  TerminateInstancesCommand,
} from "@aws-sdk/client-ec2";
import { INSTANCE_TAG } from "./ec2-options.ts";

/** A machine as the model of AWS shows it to its account. */
export interface MotoMachine {
  readonly ec2Id: string;
  /** The fleet's own id of it; empty if it carries none. */
  readonly instanceId: string;
  readonly clientToken: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly state: string;
}

/** Looks at the model of AWS behind the fleet's back, and meddles there. */
export interface MotoAccount extends Disposable {
  /** All machines that ever were, those that have ended too. */
  machines(): Promise<readonly MotoMachine[]>;
  terminate(ec2Id: string): Promise<void>;
  /** A subnet whose addresses are this machine's own, so that nothing is ever sent to a stranger. Returns its id. */
  makeLoopbackSubnet(): Promise<string>;
}

export const MOTO_REGION = "eu-central-1";
export const MOTO_IMAGE = "ami-12c6146b";
const CREDENTIALS = { accessKeyId: "test", secretAccessKey: "test" };

/** What another process needs to take this model for AWS. */
export function motoEnvironment(url: string): Readonly<Record<string, string>> {
  return {
    AWS_ENDPOINT_URL_EC2: url,
    AWS_REGION: MOTO_REGION,
    AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
    AWS_EC2_METADATA_DISABLED: "true",
  };
}

export function openMotoAccount(url: string): MotoAccount {
  const client = new EC2Client({ endpoint: url, region: MOTO_REGION, credentials: CREDENTIALS });
  return {
    machines: async () => {
      const { Reservations: reservations = [] } = await client.send(new DescribeInstancesCommand({}));
      return reservations
        .flatMap(({ Instances }) => Instances ?? [])
        .map(({ InstanceId: ec2Id = "", ClientToken: clientToken = "", State: state, Tags: tagList = [] }) => {
          const tags = Object.fromEntries(tagList.map(({ Key = "", Value = "" }) => [Key, Value]));
          return { ec2Id, instanceId: tags[INSTANCE_TAG] ?? "", clientToken, tags, state: state?.Name ?? "" };
        });
    },
    terminate: async (ec2Id) => {
      await client.send(new TerminateInstancesCommand({ InstanceIds: [ec2Id] }));
    },
    makeLoopbackSubnet: async () => {
      const { Vpc: vpc } = await client.send(new CreateVpcCommand({ CidrBlock: "127.77.0.0/16" }));
      const { Subnet: subnet } = await client.send(
        new CreateSubnetCommand({ VpcId: vpc?.VpcId, CidrBlock: "127.77.1.0/24" }),
      );
      if (subnet?.SubnetId === undefined) throw new Error("moto made no subnet");
      return subnet.SubnetId;
    },
    [Symbol.dispose]: () => {
      client.destroy();
    },
  };
}
