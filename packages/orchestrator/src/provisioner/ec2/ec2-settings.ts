import { setting } from "@turnbox/core";

/** The settings of a fleet on EC2. Credentials and endpoint are the SDK's own (AWS_*), and no part of it. */
export const EC2_SETTINGS = {
  ec2Region: setting.text({
    env: "TURNBOX_EC2_REGION",
    description: "The region of the machines; absent means the SDK's own (AWS_REGION).",
    default: null,
    pattern: /^[a-z]{2}(-[a-z]+)+-\d$/,
  }),
  ec2Image: setting.text({
    env: "TURNBOX_EC2_IMAGE",
    description: "The AMI of new machines; empty leaves it to the launch template.",
    default: "",
  }),
  ec2InstanceTypes: setting.textList({
    env: "TURNBOX_EC2_INSTANCE_TYPES",
    description: "Types in order of preference; the next one is tried where there is no room for the one before.",
    default: [],
  }),
  ec2Subnets: setting.textList({
    env: "TURNBOX_EC2_SUBNETS",
    description: "Subnets in order of preference, tried in turn for each type; each is in one zone.",
    default: [],
  }),
  ec2SecurityGroups: setting.textList({
    env: "TURNBOX_EC2_SECURITY_GROUPS",
    description: "Security groups of new machines; the orchestrator must reach the host's port.",
    default: [],
  }),
  ec2InstanceProfile: setting.text({
    env: "TURNBOX_EC2_INSTANCE_PROFILE",
    description: "Name or ARN of the machines' instance profile; a host needs none.",
    default: null,
  }),
  ec2LaunchTemplate: setting.text({
    env: "TURNBOX_EC2_LAUNCH_TEMPLATE",
    description: "Id or name of a launch template, with :VERSION for another than its default.",
    default: null,
  }),
  ec2Spot: setting.choice({
    env: "TURNBOX_EC2_SPOT",
    description: "Whether machines are spot machines, which cannot be stopped; preferred falls back to ordinary ones.",
    default: "off",
    values: ["off", "preferred", "only"],
  }),
  ec2DiskGib: setting.int({
    env: "TURNBOX_EC2_DISK_GIB",
    description: "Size of the root volume in GiB; absent means that of the image.",
    default: null,
    min: 8,
    max: 16_384,
  }),
  ec2RootDevice: setting.text({
    env: "TURNBOX_EC2_ROOT_DEVICE",
    description: "The image's name for its root volume.",
    default: "/dev/xvda",
    pattern: /^\/dev\/[a-z0-9]+$/,
  }),
  ec2KmsKey: setting.text({
    env: "TURNBOX_EC2_KMS_KEY",
    description: "The key that volumes are encrypted with; absent means the account's own for EBS.",
    default: null,
  }),
  ec2HostPort: setting.int({
    env: "TURNBOX_EC2_HOST_PORT",
    description: "The port that sandbox-hosts listen on.",
    default: 9100,
    min: 1,
    max: 65_535,
  }),
  ec2HostAddress: setting.choice({
    env: "TURNBOX_EC2_HOST_ADDRESS",
    description: "By which of its names a host is called; its certificate must be made out to it.",
    default: "private_ip",
    values: ["private_ip", "private_dns"],
  }),
  ec2UserDataTemplate: setting.filePath({
    env: "TURNBOX_EC2_USER_DATA_TEMPLATE",
    description: "What new machines are told at their first boot; absent means deploy/aws/user-data.yaml.",
    default: null,
  }),
} as const;
