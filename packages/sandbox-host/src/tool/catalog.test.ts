import { describe, expect, it } from "@jest/globals";
import { CATALOG, type CatalogTool, findTool } from "./catalog.ts";
import { checkParameters, type Parameters } from "./parameters.ts";
import type { ParameterSchema, Tool } from "./schema.ts";

const tools: readonly Tool[] = CATALOG;
const cases = tools.map((tool) => [tool.name, tool] as const);

/** A value that a schema takes. */
function good(schema: ParameterSchema): unknown {
  switch (schema.type) {
    case "string":
      return schema.default ?? "x";
    case "integer":
      return schema.default ?? schema.minimum;
    case "boolean":
      return true;
    case "array":
      return ["x"];
    case "object":
      return { A: "b" };
  }
}

/** Values that a schema does not take. */
function bad(schema: ParameterSchema): readonly unknown[] {
  const always = [null];
  switch (schema.type) {
    case "string":
      return [
        ...always,
        1,
        ["x"],
        "a\0b",
        "\ud800",
        ...(schema.minLength === undefined ? [] : [""]),
        ...(schema.maxLength === undefined ? [] : ["x".repeat(schema.maxLength + 1)]),
        ...(schema.pattern === undefined ? [] : ["-x", "--upload-pack=x"]),
      ];
    case "integer":
      return [...always, "1", 1.5, NaN, schema.minimum - 1, schema.maximum + 1];
    case "boolean":
      return [...always, "true", 1];
    case "array":
      return [...always, "x", [1], [""], Array.from({ length: schema.maxItems + 1 }, () => "x")];
    case "object":
      return [...always, [], "x", { A: 1 }];
  }
}

const all = (tool: Tool): Parameters =>
  Object.fromEntries(Object.entries(tool.schema.properties).map(([name, schema]) => [name, good(schema)]));
const problem = (tool: Tool, parameters: Parameters): string => {
  try {
    checkParameters(tool, parameters);
    return "";
  } catch (thrown) {
    expect(thrown).toMatchObject({ reason: "INVALID_ARGUMENT" });
    return String(thrown);
  }
};

describe("the catalog", () => {
  it("has every tool of the contract, with its tier", () => {
    expect(Object.fromEntries(tools.map(({ name, tier }) => [name, tier]))).toEqual({
      read_file: 1,
      write_file: 1,
      edit_file: 1,
      list_dir: 1,
      grep: 1,
      glob: 1,
      bash: 2,
      git_status: 2,
      git_diff: 2,
      git_log: 2,
      git_show: 2,
      git_add: 2,
      git_commit: 2,
      git_clone: 2,
      git_fetch: 2,
      git_pull: 2,
      git_push: 2,
    });
    expect(tools.filter(({ effect }) => effect === "reads").map(({ name }) => name)).toEqual([
      "read_file",
      "list_dir",
      "grep",
      "glob",
    ]);
  });

  it("knows every tool by its name and aliases, and no name twice (D14)", () => {
    const names = tools.flatMap(({ name, aliases }) => [name, ...aliases]);
    expect(new Set(names).size).toBe(names.length);
    for (const { name, aliases } of tools)
      for (const known of [name, ...aliases]) expect(findTool(known).name).toBe(name);
    const common = ["Read", "Write", "Edit", "Bash", "Grep", "Glob", "LS", "read", "write", "edit", "ls", "shell"];
    expect(common.map((name) => findTool(name).name)).toEqual([
      ...["read_file", "write_file", "edit_file", "bash", "grep", "glob", "list_dir"],
      ...["read_file", "write_file", "edit_file", "list_dir", "bash"],
    ]);
  });

  it("refuses a tool that it does not know and names those it knows", () => {
    for (const name of ["rm_rf", "", "constructor", "__proto__", "BASH"])
      expect(() => findTool(name)).toThrow(expect.objectContaining({ reason: "TOOL_NOT_FOUND" }));
    expect(() => findTool("rm")).toThrow(
      expect.objectContaining({ metadata: { tool: "rm", known: expect.stringContaining("read_file, write_file") } }),
    );
  });

  it("calls a thing by one name in all tools (D14)", () => {
    const byName = new Map<string, Set<string>>();
    for (const { schema } of tools)
      for (const [name, { type }] of Object.entries(schema.properties))
        byName.set(name, (byName.get(name) ?? new Set()).add(type));
    for (const [name, types] of byName) expect([name, [...types]]).toEqual([name, [expect.any(String)]]);
    expect([...byName.keys()].filter((name) => /file_path|directory|command|args/.test(name))).toEqual([]);
  });

  describe.each(cases)("%s", (_name, tool) => {
    it("is described to a model in words and as a closed JSON schema", () => {
      expect(tool.description).toMatch(/^[A-Z].*\.$/);
      expect(tool.schema).toMatchObject({ type: "object", additionalProperties: false });
      for (const schema of Object.values(tool.schema.properties)) expect(schema.description).toMatch(/^[A-Z].*\.$/);
      for (const name of tool.schema.required) expect(tool.schema.properties).toHaveProperty([name]);
      expect(JSON.parse(JSON.stringify(tool.schema))).toEqual(tool.schema);
    });

    it("takes exactly what its schema says, and names the parameter that it refuses (D14)", () => {
      expect(problem(tool, all(tool))).toBe("");
      for (const [name, schema] of Object.entries(tool.schema.properties)) {
        for (const value of bad(schema)) {
          expect(problem(tool, { ...all(tool), [name]: value })).toContain(`params.${name}: `);
        }
        const { [name]: _left, ...others } = all(tool);
        const isRequired = tool.schema.required.includes(name);
        expect(problem(tool, others)).toMatch(isRequired ? `params.${name}: is required` : /^$/);
      }
      for (const unknown of ["file_path", "args", "constructor"])
        expect(problem(tool, { ...all(tool), [unknown]: "x" })).toContain(`params.${unknown}: is not a parameter`);
    });
  });

  it("is typed by its names", () => {
    const name: CatalogTool["name"] = "git_push";
    expect(findTool(name).name).toBe(name);
  });
});
