import { describe, expect, it } from "@jest/globals";
import { parseBearer } from "./bearer.ts";

describe("parseBearer", () => {
  it.each(["Bearer abc.DEF_-~+/=", "bearer abc", "BEARER  abc "])("takes the token out of %j", (header) => {
    expect(parseBearer(header)?.reveal()).toMatch(/^abc/);
  });

  it.each([null, undefined, "", "abc", "Basic abc", "Bearer", "Bearer ", "Bearer a b", "Bearer a\tb", "xBearer abc"])(
    "finds none in %j",
    (header) => {
      expect(parseBearer(header)).toBeUndefined();
    },
  );
});
