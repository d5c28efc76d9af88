import { fuzzHost } from "../support/fuzz/host.suite.ts";

fuzzHost({ inputs: 5000, limitMs: 6 * 3_600_000 });
