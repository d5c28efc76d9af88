import { objectStoreSuite } from "../object-store.suite.ts";
import { FakeObjectStore } from "./fake-object-store.ts";

objectStoreSuite(
  "fake",
  async () => {
    const store = new FakeObjectStore();
    return {
      store,
      other: async () => store,
      leftovers: async () => [],
      [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
    };
  },
  { nestedKeys: "stored" },
);
