import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import { invalidArgument, parseSessionId } from "@turnbox/core";
import type { PageRequest } from "@turnbox/protocol/turnbox/common/v1/paging_pb";

const DEFAULT_PAGE_SIZE = 100;
const MAX_PAGE_SIZE = 1000;
const TEMPLATE = /^[a-z0-9][a-z0-9._-]{0,62}(@[A-Za-z0-9][A-Za-z0-9._-]{0,127})?$/;

/** A name by the rule of session ids; empty means none. */
export function parseName(name: string): string | undefined {
  return name === "" ? undefined : parseSessionId(name, "name");
}

/** Empty means the default template. */
export function parseTemplate(template: string): string {
  if (template !== "" && !TEMPLATE.test(template)) {
    throw invalidArgument(
      "template",
      "must be name or name@version, the name of lower-case letters, digits, dot, underscore, hyphen",
    );
  }
  return template;
}

export function parsePositiveMs(field: string, duration: Duration | undefined): number | undefined {
  if (duration === undefined) return undefined;
  const value = durationMs(duration);
  if (!(value > 0) || !Number.isSafeInteger(Math.ceil(value)))
    throw invalidArgument(field, "must be more than nothing");
  return value;
}

export function parsePage(page: PageRequest | undefined): { readonly pageSize: number; readonly pageToken: string } {
  const pageSize = page?.pageSize ?? 0;
  if (pageSize > MAX_PAGE_SIZE) throw invalidArgument("page.page_size", `must be at most ${MAX_PAGE_SIZE}`);
  return { pageSize: pageSize === 0 ? DEFAULT_PAGE_SIZE : pageSize, pageToken: page?.pageToken ?? "" };
}
