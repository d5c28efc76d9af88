import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { Aim } from "./aim.ts";
import { hostileJson } from "./hostile.ts";

/** Cheap commands: the fuzzer tests what happens to requests, not to scripts. */
const COMMANDS = ["true", "false", "echo x", "cat", "echo y >&2; exit 3", "printf '\\0\\377'"] as const;
const PATHS = ["a", "dir", "dir/b", "/workspace/a", ".", "new", "/etc/passwd", "link"] as const;

interface Schema {
  readonly properties?: Readonly<Record<string, Readonly<Record<string, JsonValue>>>>;
  readonly required?: readonly string[];
}

/** Parameters by the schema that the catalog gives for the tool. */
export function toolParameters(aim: Aim): JsonObject {
  const { chance, tool, hostility } = aim;
  const { properties = {}, required = [] } = tool.schema as Schema;
  const chosen = Object.entries(properties).filter(([name]) => chance.happens(required.includes(name) ? 0.97 : 0.3));
  return Object.fromEntries(
    chosen.map(([name, schema]) => [
      name,
      chance.happens(hostility) ? hostileJson(chance) : fitting(name, schema, aim),
    ]),
  );
}

function fitting(name: string, schema: Readonly<Record<string, JsonValue>>, aim: Aim): JsonValue {
  const { chance } = aim;
  switch (schema["type"]) {
    case "integer":
      return chance.of([schema["minimum"] ?? 0, schema["maximum"] ?? 1, 1]);
    case "boolean":
      return chance.happens(0.5);
    case "array":
      return [chance.of(PATHS)];
    case "object":
      return { A: "b" };
    default:
      return fittingText(name, aim);
  }
}

function fittingText(name: string, { chance }: Aim): string {
  if (name === "cmd") return chance.of(COMMANDS);
  if (name === "cwd") return "/workspace";
  if (name === "url") return "https://localhost/x.git";
  if (/path|dir/.test(name)) return chance.of(PATHS);
  return chance.of(["x", "*", "text\n", "a.*", "old"]);
}
