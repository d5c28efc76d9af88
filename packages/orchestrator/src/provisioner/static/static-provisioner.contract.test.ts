import { systemClock } from "@turnbox/core";
import { provisionerSuite } from "../provisioner.suite.ts";
import { createStaticProvisioner } from "./static-provisioner.ts";

provisionerSuite("static", async () =>
  createStaticProvisioner({
    hosts: [{ instanceId: "i-1", url: "https://10.0.0.1:9100" }],
    tags: { "fleet-id": "f1" },
    clock: systemClock,
  }),
);
