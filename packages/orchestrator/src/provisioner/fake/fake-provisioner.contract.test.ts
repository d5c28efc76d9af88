import { systemClock } from "@turnbox/core";
import { provisionerSuite } from "../provisioner.suite.ts";
import { createFakeProvisioner } from "./fake-provisioner.ts";

provisionerSuite("fake", () => Promise.resolve(createFakeProvisioner({ clock: systemClock })));
