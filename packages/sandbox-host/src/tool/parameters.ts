import { invalidArgument } from "@turnbox/core";
import type { ParameterSchema, Tool } from "./catalog.ts";

export type Parameters = Readonly<Record<string, unknown>>;

/** Throws `INVALID_ARGUMENT` naming the parameter and its rule where the parameters break the tool's schema. */
export function checkParameters(tool: Tool, parameters: Parameters): void {
  const { properties, required } = tool.schema;
  for (const name of required) {
    if (parameters[name] === undefined) throw invalidArgument(`params.${name}`, `is required by tool ${tool.name}`);
  }
  for (const [name, value] of Object.entries(parameters)) {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (schema === undefined) {
      const known = Object.keys(properties).join(", ");
      throw invalidArgument(`params.${name}`, `is not a parameter of tool ${tool.name}; it has ${known}`);
    }
    const problem = problemOf(schema, value);
    if (problem !== null) throw invalidArgument(`params.${name}`, problem);
  }
}

function problemOf(schema: ParameterSchema, value: unknown): string | null {
  switch (schema.type) {
    case "string":
      return typeof value === "string" ? problemOfText(schema, value) : "must be a string";
    case "integer":
      if (!Number.isInteger(value)) return "must be a whole number";
      return (value as number) < schema.minimum || (value as number) > schema.maximum
        ? `must be from ${schema.minimum} to ${schema.maximum}`
        : null;
    case "boolean":
      return typeof value === "boolean" ? null : "must be true or false";
    case "object":
      return isStringMap(value) ? null : "must be an object whose values are strings without NUL characters";
  }
}

function problemOfText(schema: Extract<ParameterSchema, { readonly type: "string" }>, value: string): string | null {
  if (value.includes("\0")) return "must not contain a NUL character";
  if (value.length < (schema.minLength ?? 0)) return "must not be empty";
  const { maxLength } = schema;
  return maxLength !== undefined && value.length > maxLength ? `must have at most ${maxLength} characters` : null;
}

function isStringMap(value: unknown): value is Readonly<Record<string, string>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((entry) => typeof entry === "string" && !entry.includes("\0"));
}
