import { fuzzHost } from "../support/fuzz/host.suite.ts";

fuzzHost({ inputs: 100, limitMs: 300_000 });
