import { describe, expect, it } from "@jest/globals";
import { readHouse } from "../../scripts/house/map-imports.mjs";
import { drawHouse } from "../../scripts/house/map-picture.mjs";
import { createSource } from "../../scripts/house/sources.mjs";

interface Arrow {
  readonly from: string;
  readonly to: string;
  readonly implied: boolean;
}
interface House {
  readonly packages: readonly {
    readonly name: string;
    readonly rows: readonly (readonly { readonly id: string; readonly files: readonly string[] }[])[];
    readonly arrows: readonly Arrow[];
  }[];
  readonly arrows: readonly Arrow[];
}

function read(files: Readonly<Record<string, string>>, rooms: unknown): House {
  const sources: unknown[] = Object.entries(files).map(([file, text]) => createSource(file, text) as unknown);
  return readHouse(sources, rooms);
}

const ROOMS = { core: {}, orchestrator: { rows: [["rpc"], ["fleet", "store"], ["async"]], beside: "above" } };
const FLEET = "packages/orchestrator/src";
const FILES = {
  [`${FLEET}/main.ts`]: 'import "./rpc/a.ts"; import "./async/a.ts";',
  [`${FLEET}/rpc/a.ts`]: 'import type { A } from "../fleet/a.ts"; import "./b.ts";',
  [`${FLEET}/fleet/a.ts`]: 'import "../async/a.ts"; import "@turnbox/core"; import "../store/fake/a.ts";',
  [`${FLEET}/fleet/a.test.ts`]: 'import "../rpc/a.ts";',
  [`${FLEET}/store/a.ts`]: "",
  [`${FLEET}/async/a.ts`]: "",
  "packages/core/src/index.ts": 'export * from "./text/a.ts";',
  "packages/core/src/cycle.ts": 'import "./text/a.ts";',
  "packages/core/src/text/a.ts": 'await import("../async/b.ts");',
  "packages/core/src/async/b.ts": "",
};

describe("readHouse", () => {
  it("puts rooms into their rows, and the files beside them above", () => {
    const [, orchestrator] = read(FILES, ROOMS).packages;
    expect(orchestrator?.rows.map((row) => row.map(({ id }) => id))).toEqual([
      ["(above)"],
      ["rpc"],
      ["fleet", "store"],
      ["async"],
    ]);
    expect(orchestrator?.rows[0]?.[0]?.files).toEqual(["main"]);
  });

  it("puts rooms without an order into rows by what they import, and leaves out the index of a package", () => {
    const [core] = read(FILES, ROOMS).packages;
    expect(core?.rows.map((row) => row.map(({ id, files }) => [id, ...files]))).toEqual([
      [["(level 2)", "cycle"]],
      [["text"]],
      [["async"]],
    ]);
  });

  it("finds imports of each kind, and which follow from others; those of tests and fakes count for nothing", () => {
    const { packages, arrows } = read(FILES, ROOMS);
    expect(packages[1]?.arrows).toEqual([
      { from: "(above)", to: "async", implied: true },
      { from: "(above)", to: "rpc", implied: false },
      { from: "fleet", to: "async", implied: false },
      { from: "rpc", to: "fleet", implied: false },
    ]);
    expect(arrows).toEqual([{ from: "orchestrator", to: "core", implied: false }]);
  });
});

describe("drawHouse", () => {
  it("names each package and room, and draws each import", () => {
    const picture = drawHouse(read(FILES, ROOMS));
    for (const name of ["core", "orchestrator", "rpc", "fleet", "store", "async", "text", "main"])
      expect(picture).toContain(`>${name}</text>`);
    expect(picture).toContain("<title>rpc imports fleet</title>");
    expect(picture).toContain("<title>orchestrator imports core</title>");
  });

  it("refuses a package that it has no position for", () => {
    expect(() => drawHouse(read({}, { attic: {} }))).toThrow("no position for attic");
  });
});
