import { invalidArgument } from "@turnbox/core";

/** Accepts what a template may be called. */
export function parseTemplateName(raw: string, field = "name"): string {
  if (!/^[a-z0-9][a-z0-9._-]{0,62}$/.test(raw) || raw.includes("..")) {
    throw invalidArgument(
      field,
      "must begin with a lower-case letter or digit, then lower-case letters, digits, dot, underscore or hyphen, at most 63 characters",
    );
  }
  return raw;
}

/** What a session is made from, as a caller writes it: `name` or `name@version`. */
export interface TemplateReference {
  readonly name: string;
  /** A digest or a unique prefix of one; absent means the latest. */
  readonly version: string | null;
}

export function parseTemplateReference(raw: string, field = "base"): TemplateReference {
  const at = raw.indexOf("@");
  if (at === -1) return { name: parseTemplateName(raw, field), version: null };
  const version = raw.slice(at + 1);
  if (!/^[0-9a-f]{8,64}$/.test(version)) {
    throw invalidArgument(
      field,
      "the version after @ must be a digest or 8 or more of its first characters, in lower-case hex",
    );
  }
  return { name: parseTemplateName(raw.slice(0, at), field), version };
}
