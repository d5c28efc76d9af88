import { invalidArgument, SandboxError } from "@turnbox/core";
import type { BaseInfo } from "../storage/storage.ts";

/** What a session is made from, as a caller writes it: `name` or `name@version`. */
export interface TemplateReference {
  readonly name: string;
  /** A digest or a unique prefix of one; null means the latest version. */
  readonly version: string | null;
}

/** Accepts the name of a template. */
export function parseTemplateName(raw: string, field = "name"): string {
  if (!/^[a-z0-9][a-z0-9._-]{0,62}$/.test(raw) || raw.includes("..")) {
    throw invalidArgument(
      field,
      "must begin with a lower-case letter or digit, then lower-case letters, digits, dot, underscore or hyphen, at most 63 characters",
    );
  }
  return raw;
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

/** The version that a reference means, of those of its name with the newest first. `TEMPLATE_NOT_FOUND` unless it means one. */
export function chooseVersion({ name, version }: TemplateReference, versions: readonly BaseInfo[]): BaseInfo {
  const fitting = version === null ? versions.slice(0, 1) : versions.filter(({ digest }) => digest.startsWith(version));
  const [found] = fitting;
  if (found !== undefined && fitting.length === 1) return found;
  const asked = version === null ? name : `${name}@${version}`;
  throw new SandboxError(
    "TEMPLATE_NOT_FOUND",
    fitting.length > 1 ? `${fitting.length} versions begin with ${asked}` : `there is no template ${asked}`,
    { metadata: { template: asked } },
  );
}
