import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { generateKeyPairSync } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createLog, parseConfig, systemClock } from "@turnbox/core";
import { EC2_SETTINGS } from "./ec2-settings.ts";
import type { Provisioner } from "../provisioner.ts";
import { createEc2ProvisionerFromConfig } from "./ec2-provisioner-from-config.ts";

const publicKeyPem = generateKeyPairSync("ed25519").publicKey.export({ type: "spki", format: "pem" }).toString();
const ENV = {
  TURNBOX_EC2_REGION: "eu-central-1",
  TURNBOX_EC2_IMAGE: "ami-1",
  TURNBOX_EC2_INSTANCE_TYPES: "m7i.large,m6i.large",
};

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "turnbox-ec2-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const create = (env: Readonly<Record<string, string>>, fleetId = "h0123456789"): Provisioner =>
  createEc2ProvisionerFromConfig({
    config: parseConfig(EC2_SETTINGS, { env }),
    fleetId,
    tags: { "turnbox-fleet": fleetId },
    publicKeyPem,
    clock: systemClock,
    logger: createLog({ name: "test", level: "silent", to: { write: () => undefined } }),
    random: () => 0.5,
  });

describe("an EC2 provisioner from the configuration", () => {
  it("takes the shipped user data and can stop machines", async () => {
    await using provisioner = create(ENV);
    expect(provisioner).toMatchObject({
      kind: "ec2",
      image: "ami-1",
      capabilities: { launch: "supported", stopStart: "supported" },
    });
  });

  it("cannot stop machines where they are spot machines", async () => {
    await using provisioner = create({ ...ENV, TURNBOX_EC2_SPOT: "preferred" });
    expect(provisioner.capabilities.stopStart).toBe("unsupported");
  });

  it("does with a launch template alone", async () => {
    await using provisioner = create({ TURNBOX_EC2_LAUNCH_TEMPLATE: "turnbox-sandbox-host:3" });
    expect(provisioner.image).toBe("");
  });

  it.each<[string, Readonly<Record<string, string>>]>([
    ["no image", { ...ENV, TURNBOX_EC2_IMAGE: "" }],
    ["no type", { ...ENV, TURNBOX_EC2_INSTANCE_TYPES: "" }],
    ["a template of the user data that is not there", { ...ENV, TURNBOX_EC2_USER_DATA_TEMPLATE: "/nowhere" }],
  ])("refuses %s before the first launch", (_what, env) => {
    expect(() => create(env)).toThrow(expect.objectContaining({ reason: "CONFIG_INVALID" }));
  });

  it("refuses user data that leaves something out, and a fleet's id that no home can have", () => {
    const file = join(folder, "user-data");
    writeFileSync(file, "#cloud-config\n");
    const invalid = expect.objectContaining({ reason: "CONFIG_INVALID" });
    expect(() => create({ ...ENV, TURNBOX_EC2_USER_DATA_TEMPLATE: file })).toThrow(invalid);
    expect(() => create(ENV, "Prod")).toThrow(invalid);
  });
});
