import type { JsonObject } from "@bufbuild/protobuf";
import { invalidArgument } from "@turnbox/core";

/** What JSON keeps of an object: fields that are undefined are left out. */
export function toJsonObject(field: string, value: Readonly<Record<string, unknown>>): JsonObject {
  try {
    return JSON.parse(JSON.stringify(value)) as JsonObject;
  } catch {
    throw invalidArgument(field, "must be an object that JSON can hold");
  }
}
