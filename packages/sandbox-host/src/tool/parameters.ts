import { invalidArgument } from "@turnbox/core";
import type { ListSchema, NumberSchema, ParameterSchema, TextSchema, Tool } from "./schema.ts";

export type Parameters = Readonly<Record<string, unknown>>;

/** Throws `INVALID_ARGUMENT` naming the parameter and its rule, if the parameters break the tool's schema. */
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
      return problemOfText(schema, value);
    case "integer":
      return problemOfNumber(schema, value);
    case "boolean":
      return typeof value === "boolean" ? null : "must be true or false";
    case "array":
      return problemOfList(schema, value);
    case "object":
      return isStringMap(value) ? null : "must be an object whose values are strings without NUL characters";
  }
}

function problemOfText(schema: TextSchema, value: unknown): string | null {
  if (typeof value !== "string") return "must be a string";
  if (value.includes("\0")) return "must not contain a NUL character";
  if (!value.isWellFormed()) return "must be Unicode without lone surrogates";
  if (value.length < (schema.minLength ?? 0)) return "must not be empty";
  const { maxLength, pattern } = schema;
  if (maxLength !== undefined && value.length > maxLength) return `must have at most ${maxLength} characters`;
  return pattern !== undefined && !new RegExp(pattern, "u").test(value) ? `must match ${pattern}` : null;
}

function problemOfNumber({ minimum, maximum }: NumberSchema, value: unknown): string | null {
  if (typeof value !== "number" || !Number.isInteger(value)) return "must be a whole number";
  return value < minimum || value > maximum ? `must be from ${minimum} to ${maximum}` : null;
}

function problemOfList({ items, minItems, maxItems }: ListSchema, value: unknown): string | null {
  if (!Array.isArray(value)) return "must be a list of strings";
  if (value.length < minItems || value.length > maxItems) return `must have from ${minItems} to ${maxItems} entries`;
  for (const [index, item] of value.entries()) {
    const problem = problemOfText({ ...items, description: "" }, item);
    if (problem !== null) return `entry ${index} ${problem}`;
  }
  return null;
}

function isStringMap(value: unknown): value is Readonly<Record<string, string>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((entry) => typeof entry === "string" && !entry.includes("\0"));
}
