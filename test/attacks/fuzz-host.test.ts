import { fuzzHost } from "../support/fuzz/host.suite.ts";

fuzzHost({ inputs: Number(process.env["TURNBOX_FUZZ_INPUTS"] ?? 100), limitMs: 600_000 });
