import { fuzzControl } from "../support/fuzz/control.suite.ts";

fuzzControl({ inputs: 5000, limitMs: 6 * 3_600_000 });
