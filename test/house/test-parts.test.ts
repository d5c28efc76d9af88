import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { expect, it } from "@jest/globals";
import { readSystemParts } from "../../scripts/bootstrap/system-parts.mjs";
import { TEST_PARTS, withoutMainCluster } from "../../scripts/check/test-parts.mjs";

it("installs PostgreSQL for tests only: it is no part of a machine that runs the services", () => {
  const services = (readSystemParts() as readonly { readonly package: string }[]).map((part) => part.package);
  expect(TEST_PARTS.map((part) => part.package)).toContain("postgresql");
  expect(services.filter((name) => name.startsWith("postgresql"))).toEqual([]);
});

it("keeps the package from making a database of its own, for as long as it is installed and no longer", async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "turnbox-house-"));
  const file = path.join(folder, "d", "turnbox-tests.conf");
  const during: unknown = await withoutMainCluster(() => readFileSync(file, "utf8"), path.dirname(file));
  expect(during).toMatch(/^create_main_cluster = false$/m);
  const failed = withoutMainCluster(() => Promise.reject(new Error("apt failed")), path.dirname(file));
  await expect(failed).rejects.toThrow("apt failed");
  expect(existsSync(file)).toBe(false);
  rmSync(folder, { recursive: true });
});
