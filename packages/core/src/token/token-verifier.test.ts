import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import type { SandboxError } from "../error/sandbox-error.ts";
import { Secret } from "../secret/secret.ts";
import { createManualClock } from "../testing/manual-clock.ts";
import { createTokenSigner, type TokenGrant } from "./token-signer.ts";
import { createTokenVerifier } from "./token-verifier.ts";

const keys = generateKeyPairSync("ed25519");
const otherKeys = generateKeyPairSync("ed25519");
const clock = createManualClock();
const homeToken = new Secret("home-token-of-this-machine-0123456789");
const signer = createTokenSigner({ privateKey: keys.privateKey, issuer: "fleet-1", clock });
const verifier = createTokenVerifier({ publicKeys: [keys.publicKey], homeToken, issuer: "fleet-1", clock });

const GRANT: TokenGrant = { tenant: "acme", sandbox: "s1", verbs: ["read", "execute"], lifetimeMs: 60_000 };

const refusal = (token: string | undefined): string => {
  try {
    verifier.verify(token === undefined ? undefined : new Secret(token));
  } catch (thrown) {
    expect(thrown).toMatchObject({ reason: "UNAUTHENTICATED" });
    return (thrown as SandboxError).message;
  }
  throw new Error("was accepted");
};

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A token with any header and claims, rightly signed over exactly that. */
const forge = (header: unknown, changes: Record<string, unknown> = {}): string => {
  const nowSeconds = Math.floor(clock.nowMs() / 1000);
  const claims = {
    iss: "fleet-1",
    tenant: "acme",
    verbs: ["read"],
    iat: nowSeconds,
    exp: nowSeconds + 60,
    jti: "x",
    ...changes,
  };
  const signed = `${encode(header)}.${encode(claims)}`;
  return `${signed}.${sign(null, Buffer.from(signed), keys.privateKey).toString("base64url")}`;
};

const HEADER = { alg: "EdDSA", typ: "JWT" };

describe("createTokenVerifier", () => {
  it("knows the holder of a signed token", () => {
    expect(verifier.verify(signer.sign(GRANT).token)).toEqual({
      kind: "scoped",
      tenant: "acme",
      sandbox: "s1",
      verbs: ["read", "execute"],
      expiresAtMs: Math.ceil((clock.nowMs() + GRANT.lifetimeMs) / 1000) * 1000,
    });
    expect(verifier.verify(homeToken).expiresAtMs).toBeUndefined();
    expect(verifier.verify(new Secret(forge(HEADER)))).toMatchObject({ tenant: "acme" });
  });

  it("knows the holder of the home's token, and none that is like it", () => {
    expect(verifier.verify(homeToken)).toMatchObject({ kind: "home", tenant: "default" });
    expect(refusal(`${homeToken.reveal()}x`)).toContain("malformed");
    expect(refusal(homeToken.reveal().slice(1))).toContain("malformed");
    const without = createTokenVerifier({ publicKeys: [keys.publicKey], issuer: "fleet-1", clock });
    expect(() => without.verify(homeToken)).toThrow("malformed");
  });

  it("refuses a missing token, and anything malformed", () => {
    expect(refusal(undefined)).toContain("no bearer token");
    const good = signer.sign(GRANT).token.reveal();
    for (const bad of ["", "a", "a.b", "a.b.c", `${good}.x`, "x".repeat(5000), good.replace(".", "..")]) refusal(bad);
    refusal(`${good}=`);
    refusal(`${good.slice(0, -1)}!`);
  });

  it("refuses a token that chooses its own algorithm (alg none, HS256 with the public key)", () => {
    const [, payload] = signer.sign(GRANT).token.reveal().split(".");
    refusal(`${encode({ alg: "none", typ: "JWT" })}.${payload}.`);
    refusal(forge({ alg: "none", typ: "JWT" }));
    const signed = `${encode({ alg: "HS256", typ: "JWT" })}.${payload}`;
    const pem = keys.publicKey.export({ type: "spki", format: "pem" });
    refusal(`${signed}.${createHmac("sha256", pem).update(signed).digest("base64url")}`);
  });

  it("refuses a wrong signature: other key, changed claims, none", () => {
    const other = createTokenSigner({ privateKey: otherKeys.privateKey, issuer: "fleet-1", clock });
    expect(refusal(other.sign(GRANT).token.reveal())).toContain("signature");
    const [header, , signature] = signer.sign(GRANT).token.reveal().split(".");
    expect(refusal(`${header}.${encode({ tenant: "*" })}.${signature}`)).toContain("signature");
    expect(refusal(`${header}.${encode({ tenant: "*" })}.`)).toContain("signature");
  });

  it("refuses an expired token, one of the future and one of another fleet (attack 57)", async () => {
    const local = createManualClock();
    const localSigner = createTokenSigner({ privateKey: keys.privateKey, issuer: "fleet-1", clock: local });
    const localVerifier = createTokenVerifier({
      publicKeys: [keys.publicKey],
      issuer: "fleet-1",
      clock: local,
      skewMs: 1000,
    });
    const { token, expiresAtMs } = localSigner.sign(GRANT);
    await local.advance(expiresAtMs - local.nowMs() + 999);
    expect(localVerifier.verify(token)).toMatchObject({ tenant: "acme" });
    await local.advance(1);
    expect(() => localVerifier.verify(token)).toThrow("expired");
    const early = localSigner.sign(GRANT).token;
    local.stepWallTime(-10_000);
    expect(() => localVerifier.verify(early)).toThrow("not valid yet");
    expect(refusal(forge(HEADER, { nbf: Math.floor(clock.nowMs() / 1000) + 30 }))).toContain("not valid yet");
    expect(refusal(forge(HEADER, { iss: "fleet-2" }))).toContain("another fleet");
  });

  it.each([
    [{ exp: undefined }],
    [{ exp: "9999999999" }],
    [{ iat: -1 }],
    [{ verbs: ["read", "fly"] }],
    [{ verbs: "read" }],
    [{ tenant: "" }],
    [{ tenant: "../x" }],
    [{ sandbox: 7 }],
    [{ sandbox: "a/b" }],
    [{ jti: undefined }],
  ])("refuses signed claims that break the form: %j", (changes) => {
    expect(refusal(forge(HEADER, changes))).toContain("malformed");
  });

  it("refuses a token at its end also where it was accepted before, and a changed one however often the true one came", async () => {
    const { token } = signer.sign(GRANT);
    const [header, , signature] = token.reveal().split(".");
    const changed = `${header}.${encode({ tenant: "other" })}.${signature}`;
    for (let times = 0; times < 3; times += 1) {
      expect(verifier.verify(token)).toMatchObject({ tenant: "acme" });
      expect(refusal(changed)).toContain("signature");
    }
    await clock.advance(GRANT.lifetimeMs + 6000);
    expect(refusal(token.reveal())).toContain("expired");
  });

  it("knows tokens again however many others came between", () => {
    const { token } = signer.sign(GRANT);
    expect(verifier.verify(token)).toMatchObject({ tenant: "acme" });
    for (let count = 0; count < 1100; count += 1) verifier.verify(signer.sign(GRANT).token);
    expect(verifier.verify(token)).toMatchObject({ tenant: "acme" });
  });

  it("accepts any of several keys, so that a key can be replaced while calls go on (attack 61)", () => {
    const both = createTokenVerifier({ publicKeys: [otherKeys.publicKey, keys.publicKey], issuer: "fleet-1", clock });
    expect(both.verify(signer.sign(GRANT).token)).toMatchObject({ tenant: "acme" });
  });

  it("never puts a token into its refusal (attack 60)", () => {
    const token = `${signer.sign(GRANT).token.reveal()}x`;
    expect(refusal(token)).not.toContain(token.slice(0, 20));
  });
});
