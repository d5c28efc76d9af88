import { invalidArgument } from "@turnbox/core";

const RULE =
  "the instance must be letters, digits, underscore and hyphen, beginning with a letter or digit, at most 63";

/** An instance's id is a part of sandbox ids, directories and arguments, so it holds no colon, dot or slash. */
export function parseInstanceId(raw: string, field = "instance_id"): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/.test(raw)) throw invalidArgument(field, RULE);
  return raw;
}
