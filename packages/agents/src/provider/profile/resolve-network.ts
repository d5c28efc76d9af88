import { invalidArgument } from "@turnbox/client/internal";
import { fieldsOf, parseBoolean, parseTexts } from "./field.ts";
import type { NetworkPolicy } from "./resolved.ts";

const FIELDS: readonly (keyof NetworkPolicy)[] = [
  "allowPublicIngress",
  "allowOutbound",
  "allowList",
  "denyList",
  "required",
];
const MAX_RULES = 1024;

/** The policy with its defaults; `usual` is what holds where nothing is said. */
export function resolveNetwork(value: unknown, usual: "open" | "closed"): NetworkPolicy {
  const given = value === undefined ? {} : fieldsOf("network", value, FIELDS);
  const isOpen = usual === "open";
  return {
    allowPublicIngress: parseBoolean("network.allowPublicIngress", given["allowPublicIngress"] ?? isOpen),
    allowOutbound: parseBoolean("network.allowOutbound", given["allowOutbound"] ?? isOpen),
    allowList: parseRules("network.allowList", given["allowList"]),
    denyList: parseRules("network.denyList", given["denyList"]),
    required: parseBoolean("network.required", given["required"] ?? false),
  };
}

function parseRules(field: string, value: unknown): readonly string[] {
  const rules = parseTexts(field, value ?? []);
  if (rules.length > MAX_RULES) throw invalidArgument(field, `must have at most ${MAX_RULES} rules`);
  return rules;
}
