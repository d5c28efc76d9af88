import { describe } from "@jest/globals";
import { baseSuite } from "./suite/base.suite.ts";
import { dependencySuite } from "./suite/dependency.suite.ts";
import { endSuite } from "./suite/end.suite.ts";
import { headSuite } from "./suite/head.suite.ts";
import { journalsSuite } from "./suite/journals.suite.ts";
import { sessionSuite } from "./suite/session.suite.ts";
import { snapshotSuite } from "./suite/snapshot.suite.ts";
import { unchangedSuite } from "./suite/unchanged.suite.ts";
import { viewSuite } from "./suite/view.suite.ts";
import { createSuiteFixture, type StorageHarness, type StorageSuiteOptions } from "./suite/suite-fixture.suite.ts";

export type { StorageHarness, StorageSuiteOptions } from "./suite/suite-fixture.suite.ts";

/** What every adapter of the port promises. Most tests share one that `create` makes. */
export function storageSuite(name: string, create: () => Promise<StorageHarness>, options: StorageSuiteOptions): void {
  describe(`Storage: ${name}`, () => {
    const suite = createSuiteFixture(create, options);
    sessionSuite(suite);
    baseSuite(suite);
    headSuite(suite);
    journalsSuite(suite);
    snapshotSuite(suite);
    dependencySuite(suite);
    unchangedSuite(suite);
    viewSuite(suite);
    endSuite(create);
  });
}
