import { fuzzControl } from "../support/fuzz/control.suite.ts";

fuzzControl({ inputs: Number(process.env["TURNBOX_FUZZ_INPUTS"] ?? 100), limitMs: 600_000 });
