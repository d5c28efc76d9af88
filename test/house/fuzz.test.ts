import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fromBinary, fromJsonString } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { type Input, makeInput } from "../support/fuzz/input.ts";
import { CONTROL_METHODS, HOST_METHODS, nameOf } from "../support/fuzz/methods.ts";
import { toBinaryForm } from "../support/fuzz/to-binary.ts";
import { toJsonForm } from "../support/fuzz/to-json.ts";
import { newSubject, World } from "../support/fuzz/world.ts";
import { REPO } from "../support/process.ts";
import { SEED } from "../support/random.ts";

const METHODS = [...HOST_METHODS, ...CONTROL_METHODS];
const PROTOS = join(REPO, "proto/turnbox");

/** Every method of every proto, read as text: a service that no list names is found too. */
function methodsInProtos(): readonly string[] {
  const files = readdirSync(PROTOS, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".proto"));
  return files.flatMap((file) => {
    const text = readFileSync(join(PROTOS, file), "utf8");
    return text
      .split(/^service /m)
      .slice(1)
      .flatMap((service) => {
        const name = /^\w+/.exec(service)?.[0] ?? "";
        return [...service.matchAll(/^ {2}rpc (\w+)/gm)].map(([, method]) => `${name}/${method ?? ""}`);
      });
  });
}

/** Bytes of megabytes are compared by their digest. */
function digestOf(input: Input | undefined): string {
  const hash = createHash("sha256").update(JSON.stringify([input?.headers, input?.credential, input?.ending]));
  for (const piece of input?.pieces ?? []) hash.update(piece);
  return hash.digest("hex");
}

function worldOf(): World {
  const world = new World();
  world.subjects("steady").push(newSubject("fz-1"));
  return world;
}

describe("the fuzzer", () => {
  it("makes inputs for every method of the protos", () => {
    expect(METHODS.map(nameOf).sort()).toEqual([...methodsInProtos()].sort());
  });

  it.each(METHODS.map((method) => [nameOf(method), method] as const))(
    "makes the same inputs again for %s",
    (_, method) => {
      for (let index = 0; index < 20; index += 1) {
        const [one, other] = [worldOf(), worldOf()].map((world) => makeInput(method, index, { seed: SEED, world }));
        expect(digestOf(one)).toBe(digestOf(other));
      }
    },
  );

  it("makes inputs of sound values that decode in both forms, and others that do not", () => {
    const decodes = { json: 0, binary: 0, neither: 0 };
    for (const method of METHODS)
      for (let index = 0; index < 20; index += 1) {
        const [tree] = makeInput(method, index, { seed: SEED, world: worldOf() }).trees;
        if (tree === undefined) continue;
        const json = succeeds(() => fromJsonString(method.input, Buffer.from(toJsonForm(tree)).toString()));
        const binary = succeeds(() => fromBinary(method.input, toBinaryForm(tree)));
        decodes.json += Number(json);
        decodes.binary += Number(binary);
        decodes.neither += Number(!json && !binary);
      }
    const all = METHODS.length * 20;
    expect(decodes.json).toBeGreaterThan(all / 2);
    expect(decodes.binary).toBeGreaterThan(all / 2);
    expect(decodes.neither).toBeGreaterThan(0);
  });
});

function succeeds(work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}
