import { describe, expect, it } from "@jest/globals";
import { createLog, systemClock } from "@turnbox/core";
import { checkS3Options, type S3Options } from "./s3-options.ts";

const OPTIONS: S3Options = {
  bucket: "turnbox-archive",
  clock: systemClock,
  random: () => 0,
  logger: createLog({ name: "test", level: "silent", to: { write: () => undefined } }),
};

const check = (more: Partial<S3Options>) => () => {
  checkS3Options({ ...OPTIONS, ...more });
};

describe("checkS3Options", () => {
  it.each<Partial<S3Options>>([
    {},
    { prefix: "turnbox/fleet-1/" },
    { endpoint: "https://objects.example.net:9000" },
    { endpoint: "http://127.0.0.1:9000" },
    { endpoint: "http://localhost:9000" },
    { endpoint: "http://[::1]:9000" },
    { endpoint: "http://10.0.0.1:9000", plainHttp: "anywhere" },
  ])("takes %j", (more) => {
    expect(check(more)).not.toThrow();
  });

  it.each<[string, Partial<S3Options>]>([
    ["bucket", { bucket: "" }],
    ["bucket", { bucket: "Upper_case" }],
    ["bucket", { bucket: "a/b" }],
    ["prefix", { prefix: "no-slash" }],
    ["prefix", { prefix: "/a/" }],
    ["endpoint", { endpoint: "objects.example.net" }],
    ["endpoint", { endpoint: "ftp://objects.example.net" }],
    ["endpoint", { endpoint: "https://name:secret@objects.example.net" }],
    ["endpoint", { endpoint: "https://objects.example.net/?x=1" }],
    ["endpoint", { endpoint: "http://objects.example.net" }],
    ["endpoint", { endpoint: "http://127.0.0.1.example.net" }],
    ["endpoint", { endpoint: "http://10.0.0.1:9000" }],
    ["partBytes", { limits: { partBytes: 1024 } }],
  ])("refuses a wrong %s: %j", (field, more) => {
    expect(check(more)).toThrow(
      expect.objectContaining({ reason: "CONFIG_INVALID", metadata: expect.objectContaining({ field }) }),
    );
  });

  it("never repeats an endpoint that holds a secret", () => {
    expect(check({ endpoint: "https://name:secret@objects.example.net" })).not.toThrow(/secret@/);
  });
});
