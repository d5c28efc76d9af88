import { describe, expect } from "@jest/globals";
import { baseSuite } from "./suite/base.suite.ts";
import { dependencySuite } from "./suite/dependency.suite.ts";
import { endSuite } from "./suite/end.suite.ts";
import { headSuite } from "./suite/head.suite.ts";
import { journalsSuite } from "./suite/journals.suite.ts";
import { sessionSuite } from "./suite/session.suite.ts";
import { snapshotSuite } from "./suite/snapshot.suite.ts";
import { streamDamageSuite } from "./suite/stream-damage.suite.ts";
import { streamDuringSuite } from "./suite/stream-during.suite.ts";
import { createStreamFixture } from "./suite/stream-fixture.suite.ts";
import { streamTransferSuite } from "./suite/stream-transfer.suite.ts";
import { unchangedSuite } from "./suite/unchanged.suite.ts";
import { viewSuite } from "./suite/view.suite.ts";
import {
  createSuiteFixture,
  type StorageHarness,
  type StorageSuiteOptions,
  test,
} from "./suite/suite-fixture.suite.ts";

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
    streamsSuite(create, options);
  });
}

/** What every adapter promises that offers the optional port of streams. Each test shares two storages that `create` makes. */
function streamsSuite(create: () => Promise<StorageHarness>, options: StorageSuiteOptions): void {
  describe("streams", () => {
    const suite = createStreamFixture(create, options);
    test("are offered if snapshots are, or not at all", () => {
      expect(suite.here.streams === undefined ? "none" : "offered").toBe(options.streams);
      return Promise.resolve();
    });
    if (options.streams === "none") return;
    streamTransferSuite(suite);
    streamDamageSuite(suite);
    streamDuringSuite(suite);
  });
}
