import { sign, verify } from "node:crypto";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { loadOrCreateHomeToken, loadOrCreateSigningKeys, loadPublicKeys } from "./key-files.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "key-files-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const modeOf = (file: string): number => statSync(file).mode & 0o777;

describe("loadOrCreateSigningKeys", () => {
  it("makes a key pair once and loads it afterwards", () => {
    const keys = path.join(folder, "keys");
    const first = loadOrCreateSigningKeys(keys);
    const second = loadOrCreateSigningKeys(keys);
    const signature = sign(null, Buffer.from("x"), first.privateKey);
    expect(verify(null, Buffer.from("x"), second.publicKey, signature)).toBe(true);
    expect(modeOf(path.join(keys, "signing-key.pem"))).toBe(0o600);
    expect(readdirSync(keys).sort()).toEqual(["signing-key.pem", "signing-key.pub.pem"]);
    expect(readFileSync(first.publicKeyPath, "utf8")).not.toContain("PRIVATE");
    expect(loadPublicKeys(first.publicKeyPath)).toHaveLength(1);
  });

  it("writes the public half again where it is missing or another's", () => {
    const { publicKeyPath } = loadOrCreateSigningKeys(folder);
    const right = readFileSync(publicKeyPath, "utf8");
    writeFileSync(publicKeyPath, "stale");
    loadOrCreateSigningKeys(folder);
    expect(readFileSync(publicKeyPath, "utf8")).toBe(right);
  });

  it("refuses a file that holds no key rather than replacing it", () => {
    writeFileSync(path.join(folder, "signing-key.pem"), "garbage", { mode: 0o600 });
    expect(() => loadOrCreateSigningKeys(folder)).toThrow(expect.objectContaining({ reason: "CONFIG_INVALID" }));
    expect(readFileSync(path.join(folder, "signing-key.pem"), "utf8")).toBe("garbage");
  });
});

describe("loadPublicKeys", () => {
  it("reads several keys from one file and refuses a file without any", () => {
    const a = loadOrCreateSigningKeys(path.join(folder, "a"));
    const b = loadOrCreateSigningKeys(path.join(folder, "b"));
    const both = path.join(folder, "both.pem");
    writeFileSync(both, readFileSync(a.publicKeyPath, "utf8") + readFileSync(b.publicKeyPath, "utf8"));
    expect(loadPublicKeys(both)).toHaveLength(2);
    expect(() => loadPublicKeys(path.join(folder, "missing"))).toThrow(
      expect.objectContaining({ reason: "CONFIG_INVALID" }),
    );
  });
});

describe("loadOrCreateHomeToken", () => {
  it("makes 32 random bytes once, for the owner alone", () => {
    const file = path.join(folder, "home", "token");
    const first = loadOrCreateHomeToken(file);
    expect(loadOrCreateHomeToken(file).reveal()).toBe(first.reveal());
    expect(Buffer.from(first.reveal(), "base64url")).toHaveLength(32);
    expect(modeOf(file)).toBe(0o600);
  });

  it("reports a token that others can read", () => {
    const file = path.join(folder, "token");
    loadOrCreateHomeToken(file);
    chmodSync(file, 0o644);
    const reports: unknown[] = [];
    loadOrCreateHomeToken(file, { onLooseMode: (...report) => reports.push(report) });
    expect(reports).toEqual([[file, 0o644]]);
  });

  it("refuses an empty or short token file", () => {
    const file = path.join(folder, "token");
    writeFileSync(file, "\n", { mode: 0o600 });
    expect(() => loadOrCreateHomeToken(file)).toThrow(expect.objectContaining({ reason: "CONFIG_INVALID" }));
  });
});
