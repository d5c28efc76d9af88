import { readFile } from "node:fs/promises";
import {
  CreateLaunchTemplateCommand,
  type CreateLaunchTemplateCommandInput,
  DescribeInstanceAttributeCommand,
  DescribeInstancesCommand,
  DescribeSecurityGroupsCommand,
  DescribeSubnetsCommand,
  DescribeVolumesCommand,
  type EC2Client,
  type Instance,
} from "@aws-sdk/client-ec2";
import { afterAll, describe, expect, it } from "@jest/globals";
import { systemClock } from "@turnbox/core";
import { type MotoServer, providePythonTools, startMoto } from "@turnbox/core/testing";
import type { Provisioner, Tags } from "../provisioner.ts";
import { provisionerSuite } from "../provisioner.suite.ts";
import { createEc2Client } from "./ec2-provisioner-from-config.ts";
import type { Ec2Hardware } from "./ec2-options.ts";
import { HARDWARE, provisionerAt } from "./scripted-ec2.suite.ts";

const CALL = { signal: new AbortController().signal };
const TAGS = { "fleet-id": "f1" };

const IMAGE = "ami-12c6146b";

const tools = await providePythonTools();

if (tools === undefined) it.skip("the EC2 adapter against moto", () => undefined);
else against(await startMoto(tools.python));

function against(server: MotoServer): void {
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
  });

  type Prepare = (client: EC2Client) => Promise<Partial<Ec2Hardware>>;
  const create = async (prepare?: Prepare): Promise<Provisioner> => {
    await server.reset();
    return await open(TAGS, prepare);
  };
  const open = async (tags: Tags = TAGS, prepare: Prepare = async () => ({})): Promise<Provisioner> => {
    process.env["AWS_ENDPOINT_URL_EC2"] = server.url;
    process.env["AWS_ACCESS_KEY_ID"] = "test";
    process.env["AWS_SECRET_ACCESS_KEY"] = "test";
    const client = createEc2Client({ region: "eu-central-1" });
    const { Subnets: subnets = [] } = await client.send(new DescribeSubnetsCommand({}));
    return provisionerAt(server.url, {
      client,
      clock: systemClock,
      tags,
      hardware: {
        ...HARDWARE,
        image: IMAGE,
        instanceTypes: ["m5.large"],
        subnets: subnets.map(({ SubnetId }) => SubnetId ?? ""),
        ...(await prepare(client)),
      },
    });
  };
  const look = async (): Promise<readonly Instance[]> => {
    const client = createEc2Client({ region: "eu-central-1" });
    const { Reservations: all = [] } = await client.send(new DescribeInstancesCommand({}));
    client.destroy();
    return all.flatMap(({ Instances }) => Instances ?? []);
  };

  provisionerSuite("ec2 on moto", () => create());

  describe("moto", () => {
    it("shows the tags, the client token, IMDSv2 with one hop and an encrypted disk (D35)", async () => {
      await using provisioner = await create();
      await provisioner.launch({ instanceId: "i-1", tags: TAGS }, CALL);
      const [instance] = await look();
      expect(instance).toMatchObject({
        ImageId: IMAGE,
        InstanceType: "m5.large",
        ClientToken: expect.stringMatching(/^[0-9a-f]{64}$/),
        BlockDeviceMappings: [{ DeviceName: "/dev/xvda", Ebs: { DeleteOnTermination: true } }],
        MetadataOptions: { HttpTokens: "required", HttpPutResponseHopLimit: 1 },
      });
      const tags = [
        { Key: "fleet-id", Value: "f1" },
        { Key: "turnbox-instance", Value: "i-1" },
      ];
      expect(instance?.Tags).toEqual(expect.arrayContaining(tags));
      const client = createEc2Client({ region: "eu-central-1" });
      const { Volumes: volumes = [] } = await client.send(new DescribeVolumesCommand({}));
      expect(volumes).toMatchObject([{ Encrypted: true, Size: 40 }]);
      expect(volumes[0]?.Tags).toEqual(expect.arrayContaining(tags));
      client.destroy();
    });

    it("gives the user data of a machine to each that asks, for it is no secret (D36)", async () => {
      await using provisioner = await create();
      await provisioner.launch({ instanceId: "i-1", tags: TAGS }, CALL);
      const client = createEc2Client({ region: "eu-central-1" });
      const [instance] = await look();
      const { UserData: told } = await client.send(
        new DescribeInstanceAttributeCommand({ InstanceId: instance?.InstanceId, Attribute: "userData" }),
      );
      expect(Buffer.from(told?.Value ?? "", "base64").toString()).toBe("#cloud-config\n# i-1\n");
      client.destroy();
    });

    it("makes machines of the launch template that is shipped, which hold what it says (D35)", async () => {
      await using provisioner = await create(async (client) => {
        const text = await readFile(new URL("../../../../../deploy/aws/launch-template.json", import.meta.url), "utf8");
        const input = JSON.parse(text.replace("IMAGE_ID", IMAGE)) as CreateLaunchTemplateCommandInput;
        const { SecurityGroups: groups = [] } = await client.send(new DescribeSecurityGroupsCommand({}));
        input.LaunchTemplateData!.SecurityGroupIds = [groups[0]?.GroupId ?? ""];
        await client.send(new CreateLaunchTemplateCommand(input));
        return { image: "", instanceTypes: [], launchTemplate: "turnbox-sandbox-host" };
      });
      await provisioner.launch({ instanceId: "i-1", tags: TAGS }, CALL);
      const [instance] = await look();
      expect(instance).toMatchObject({ ImageId: IMAGE, InstanceType: "m7i.2xlarge" });
    });

    it("has one machine of a launch by one process and the one after it", async () => {
      await using first = await create();
      const spec = { instanceId: "i-1", tags: TAGS };
      const made = await first.launch(spec, CALL);
      await using second = await open();
      expect((await second.launch(spec, CALL)).launchedAtMs).toBe(made.launchedAtMs);
      expect(await look()).toHaveLength(1);
    });

    it("keeps the machine of another fleet as it is, also under the same id (D33)", async () => {
      await using provisioner = await create();
      await using other = await open({ "fleet-id": "f2" });
      await provisioner.launch({ instanceId: "i-1", tags: TAGS }, CALL);
      await other.terminate("i-1", CALL);
      expect(await other.list({ tags: { "fleet-id": "f2" }, states: [] }, CALL)).toEqual([]);
      expect(await provisioner.list({ tags: TAGS, states: ["running"] }, CALL)).toHaveLength(1);
      const [own] = await look();
      expect(own).toMatchObject({ State: { Name: "running" } });
    });
  });
}
