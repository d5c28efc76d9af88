import { fuzzControl } from "../support/fuzz/control.suite.ts";

fuzzControl({ inputs: 100, limitMs: 300_000 });
