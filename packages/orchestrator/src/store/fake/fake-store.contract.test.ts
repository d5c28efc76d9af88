import { storeSuite } from "../store.suite.ts";
import { createFakeStore } from "./fake-store.ts";

storeSuite("fake", () => Promise.resolve(createFakeStore()));
