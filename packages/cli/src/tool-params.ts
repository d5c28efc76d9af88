import type { ToolDescription } from "@turnbox/client";
import { invalidArgument } from "@turnbox/core";
import { parsePairs } from "./option.ts";

type JsonObject = Readonly<Record<string, unknown>>;

export interface Parameter {
  readonly name: string;
  /** Its JSON type; undefined if the schema names none or several. */
  readonly type: string | undefined;
  readonly isNeeded: boolean;
}

/** The parameters of a tool, those that are needed first. */
export function parametersOf({ inputSchema }: Pick<ToolDescription, "inputSchema">): readonly Parameter[] {
  const needed = inputSchema["required"];
  const names = Array.isArray(needed) ? needed : [];
  const parameters = Object.entries(asObject(inputSchema["properties"])).map(([name, schema]): Parameter => {
    const type = asObject(schema)["type"];
    return { name, type: typeof type === "string" ? type : undefined, isNeeded: names.includes(name) };
  });
  return [...parameters.filter(({ isNeeded }) => isNeeded), ...parameters.filter(({ isNeeded }) => !isNeeded)];
}

/**
 * A call's parameters: those of `--params`, and over them the `key=value` words. A value is text, unless the tool's schema
 * says otherwise: then it is JSON.
 */
export function parseParams(
  { json, words }: { readonly json: string | undefined; readonly words: readonly string[] },
  tool: Pick<ToolDescription, "inputSchema"> | undefined,
): JsonObject {
  const types = new Map((tool === undefined ? [] : parametersOf(tool)).map(({ name, type }) => [name, type]));
  const pairs = Object.entries(parsePairs(words, "params")).map(([name, value]): [string, unknown] => [
    name,
    (types.get(name) ?? "string") === "string" ? value : parseJson(value, name),
  ]);
  return { ...(json === undefined ? {} : parseObject(json)), ...Object.fromEntries(pairs) };
}

function parseObject(json: string): JsonObject {
  const value = parseJson(json, "params");
  if (!isObject(value)) throw invalidArgument("params", "must be a JSON object");
  return value;
}

function parseJson(text: string, field: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw invalidArgument(field, `${JSON.stringify(text)} is not JSON`);
  }
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const asObject = (value: unknown): JsonObject => (isObject(value) ? value : {});
