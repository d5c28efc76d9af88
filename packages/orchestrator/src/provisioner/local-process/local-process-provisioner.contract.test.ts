import { afterEach } from "@jest/globals";
import { provisionerSuite } from "../provisioner.suite.ts";
import { createLocalTestbed, type LocalTestbed } from "./fake-host.suite.ts";

const testbeds: LocalTestbed[] = [];
afterEach(async () => {
  for (const testbed of testbeds.splice(0)) await testbed[Symbol.asyncDispose]();
});

provisionerSuite("local-process", async () => {
  const testbed = await createLocalTestbed();
  testbeds.push(testbed);
  return testbed.provisioner;
});
