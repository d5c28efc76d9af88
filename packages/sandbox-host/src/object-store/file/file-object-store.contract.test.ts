import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@turnbox/core";
import { objectStoreSuite } from "../object-store.suite.ts";
import { call } from "../suite/suite-fixture.suite.ts";
import { openFileObjectStore } from "./file-object-store.ts";

objectStoreSuite(
  "file",
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "turnbox-objects-"));
    const directory = join(folder, "store");
    const open = () => openFileObjectStore({ directory, clock: systemClock }, call);
    const store = await open();
    return {
      store,
      other: open,
      leftovers: () => readdir(join(directory, "drafts")),
      [Symbol.asyncDispose]: async () => {
        await store[Symbol.asyncDispose]();
        await rm(folder, { recursive: true });
      },
    };
  },
  { nestedKeys: "refused" },
);
