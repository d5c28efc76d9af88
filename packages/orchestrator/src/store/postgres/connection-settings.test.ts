import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { describeServer, parseConnectionUrl } from "./connection-settings.ts";

describe("parseConnectionUrl", () => {
  it("reads user, password, host, port and database, percent-decoded", () => {
    const settings = parseConnectionUrl("postgresql://me:p%40ss%2F@127.0.0.1:6000/the%20fleet?application_name=x");
    expect(settings).toEqual({
      ...{ host: "127.0.0.1", port: 6000, user: "me", password: "p@ss/", database: "the fleet" },
      ...{ applicationName: "x", ssl: false },
    });
    expect(describeServer(settings)).toBe("127.0.0.1:6000/the fleet");
  });

  it("knows what is left out", () => {
    expect(parseConnectionUrl("postgres://me@localhost")).toMatchObject({
      ...{ host: "localhost", port: 5432, user: "me", password: undefined, database: "me" },
    });
  });

  it.each([
    "postgresql:///fleet?host=/run/postgresql&user=me&port=5433",
    "postgresql://me@%2Frun%2Fpostgresql:5433/fleet",
  ])("takes a socket's directory: %s", (url) => {
    expect(parseConnectionUrl(url)).toMatchObject({
      ...{ host: "/run/postgresql", port: 5433, user: "me", database: "fleet", ssl: false },
    });
  });

  it("takes an address of version 6", () => {
    const settings = parseConnectionUrl("postgresql://me@[::1]:5433/fleet");
    expect(settings.host).toBe("::1");
    expect(describeServer(settings)).toBe("[::1]:5433/fleet");
  });

  it.each<[string, { readonly rejectUnauthorized: boolean } | false]>([
    ["sslmode=disable", false],
    ["sslmode=require", { rejectUnauthorized: false }],
    ["sslmode=verify-ca", { rejectUnauthorized: true }],
    ["sslmode=verify-full", { rejectUnauthorized: true }],
  ])("%s decides on TLS", (mode, expected) => {
    const { ssl } = parseConnectionUrl(`postgresql://me@db.internal/fleet?${mode}`);
    if (expected === false) expect(ssl).toBe(false);
    else expect(ssl).toMatchObject(expected);
    if (ssl !== false) expect(ssl.checkServerIdentity === undefined).toBe(mode.endsWith("full"));
  });

  it("reads the files of certificates, and checks the server's wherever a root is given", () => {
    const folder = mkdtempSync(join(tmpdir(), "turnbox-store-"));
    const file = join(folder, "root.pem");
    writeFileSync(file, "root");
    const { ssl } = parseConnectionUrl(`postgresql://me@db/fleet?sslmode=require&sslrootcert=${file}`);
    expect(ssl).toMatchObject({ ca: "root", rejectUnauthorized: true });
    rmSync(folder, { recursive: true });
  });

  it.each([
    ["mysql://me:secret@db/fleet", "postgresql://"],
    ["postgresql://me:sec%ret@db/fleet?sslmode=disable", "percent-encoded"],
    ["not a url with secret", "postgresql://"],
    ["postgresql://me:secret@db/fleet", "sslmode=verify-full"],
    ["postgresql://me:secret@db/fleet?sslmode=prefer", "sslmode"],
    ["postgresql://me:secret@db/fleet?sslmode=require&target=x", "target"],
    ["postgresql://me:secret@localhost/fleet?port=70000", "port"],
    ["postgresql://me:secret@db/fleet?sslmode=require&sslrootcert=/no/such/file", "sslrootcert"],
    ["postgresql://localhost/fleet", "user"],
  ])("refuses %s, names the rule and nothing secret", (url, rule) => {
    const parse = (): unknown => parseConnectionUrl(url);
    expect(parse).toThrow(
      expect.objectContaining({ reason: "CONFIG_INVALID", message: expect.stringContaining(rule) }),
    );
    expect(parse).not.toThrow(/secret/);
  });
});
