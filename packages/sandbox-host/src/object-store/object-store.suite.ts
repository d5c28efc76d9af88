import { describe } from "@jest/globals";
import { conditionSuite } from "./suite/condition.suite.ts";
import { listSuite } from "./suite/list.suite.ts";
import { objectSuite } from "./suite/object.suite.ts";
import { signalSuite } from "./suite/signal.suite.ts";
import { streamSuite } from "./suite/stream.suite.ts";
import {
  createSuiteFixture,
  type ObjectStoreHarness,
  type ObjectStoreSuiteOptions,
} from "./suite/suite-fixture.suite.ts";

export type { ObjectStoreHarness, ObjectStoreSuiteOptions } from "./suite/suite-fixture.suite.ts";

/** What every adapter of the port promises. All tests share one store that `create` makes. */
export function objectStoreSuite(
  name: string,
  create: () => Promise<ObjectStoreHarness>,
  options: ObjectStoreSuiteOptions,
): void {
  describe(`ObjectStore: ${name}`, () => {
    const suite = createSuiteFixture(create, options);
    objectSuite(suite);
    conditionSuite(suite);
    listSuite(suite);
    streamSuite(suite);
    signalSuite(suite);
  });
}
