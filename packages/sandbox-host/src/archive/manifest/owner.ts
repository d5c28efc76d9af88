import { invalidArgument } from "@turnbox/core";
import type { KeyOwner } from "../../key-wrap/key-wrap.ts";

/** Below this are the manifests of all tenants. */
export const MANIFESTS_PREFIX = "v1/manifests/";

export type SandboxOwner = KeyOwner & { readonly kind: "sandbox" };
export type TemplateOwner = KeyOwner & { readonly kind: "template" };

/** The rule of session ids and tenants, which is narrower than that of keys of a store. */
export const ID = /^(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const FOLDERS = { sandbox: "sandboxes", template: "templates" } as const;
const KEY = /^v1\/manifests\/([^/]+)\/(sandboxes|templates)\/([^/]+)$/;

export const sandboxOf = (tenant: string, id: string): SandboxOwner => ({ tenant, kind: "sandbox", id });
/** `digest`: of the template, which is the digest of its base. */
export const templateOf = (tenant: string, digest: string): TemplateOwner => ({ tenant, kind: "template", id: digest });

/** What the keys of a tenant's manifests of one kind begin with. */
export function manifestsOf(tenant: string, kind: KeyOwner["kind"]): string {
  if (!ID.test(tenant)) throw invalidArgument("tenant", "must be the name of one tenant");
  return `${MANIFESTS_PREFIX}${tenant}/${FOLDERS[kind]}/`;
}

export function manifestKey({ tenant, kind, id }: KeyOwner): string {
  if (!ID.test(id)) throw invalidArgument(kind, "must be an id of letters, digits, dots, underscores and hyphens");
  return `${manifestsOf(tenant, kind)}${id}`;
}

/** Whose manifest is under the key; undefined for a key that `manifestKey` does not give. */
export function ownerOfKey(key: string): KeyOwner | undefined {
  const [, tenant = "", folder, id = ""] = KEY.exec(key) ?? [];
  if (!ID.test(tenant) || !ID.test(id)) return undefined;
  return { tenant, kind: folder === FOLDERS.sandbox ? "sandbox" : "template", id };
}

export const isSameOwner = (a: KeyOwner, b: KeyOwner): boolean =>
  a.tenant === b.tenant && a.kind === b.kind && a.id === b.id;

export const nameOf = ({ tenant, kind, id }: KeyOwner): string => `${kind} ${id} of tenant ${tenant}`;
