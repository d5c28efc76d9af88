import { provisionerSuite } from "../provisioner.suite.ts";
import { createLocalTestbed } from "./fake-host.suite.ts";

provisionerSuite("local-process", async () => {
  const testbed = await createLocalTestbed();
  return { ...testbed.provisioner, [Symbol.asyncDispose]: () => testbed[Symbol.asyncDispose]() };
});
