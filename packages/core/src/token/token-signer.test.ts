import { generateKeyPairSync } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "../testing/manual-clock.ts";
import { createTokenSigner, type TokenGrant } from "./token-signer.ts";
import { createTokenVerifier } from "./token-verifier.ts";

const keys = generateKeyPairSync("ed25519");
const clock = createManualClock();
const signer = createTokenSigner({ privateKey: keys.privateKey, issuer: "fleet-1", clock });
const GRANT: TokenGrant = { tenant: "acme", sandbox: "s1", verbs: ["read", "execute"], lifetimeMs: 60_000 };

describe("createTokenSigner", () => {
  it("refuses grants that no verifier would accept, and lifetimes beyond a day", () => {
    expect(() => signer.sign({ ...GRANT, tenant: "a b" })).toThrow("tenant");
    expect(() => signer.sign({ ...GRANT, sandbox: "-x" })).toThrow("sandbox");
    for (const lifetimeMs of [0, -1, Number.NaN, 86_400_001]) {
      expect(() => signer.sign({ ...GRANT, lifetimeMs })).toThrow("lifetime");
    }
  });

  it("grants nothing beyond the end that it is given, however often that is done", async () => {
    const local = createManualClock();
    const localSigner = createTokenSigner({ privateKey: keys.privateKey, issuer: "fleet-1", clock: local });
    const localVerifier = createTokenVerifier({ publicKeys: [keys.publicKey], issuer: "fleet-1", clock: local });
    let { token, expiresAtMs } = localSigner.sign({ ...GRANT, lifetimeMs: 5000 });
    const endMs = expiresAtMs;
    for (let renewal = 0; renewal < 10; renewal += 1) {
      await local.advance(501);
      const notAfterMs = localVerifier.verify(token).expiresAtMs ?? Number.NaN;
      ({ token, expiresAtMs } = localSigner.sign({ ...GRANT, lifetimeMs: 86_400_000, notAfterMs }));
      expect(expiresAtMs).toBe(endMs);
    }
    expect(localSigner.sign({ ...GRANT, lifetimeMs: 1000, notAfterMs: endMs + 60_000 }).expiresAtMs).toBeLessThan(
      endMs + 60_000,
    );
  });

  it("refuses keys of another kind", () => {
    const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
    expect(() => createTokenSigner({ privateKey: rsa.privateKey, issuer: "f", clock })).toThrow("Ed25519");
    expect(() => createTokenVerifier({ publicKeys: [rsa.publicKey], issuer: "f", clock })).toThrow("Ed25519");
  });

  it("gives every token its own id", () => {
    expect(signer.sign(GRANT).id).not.toBe(signer.sign(GRANT).id);
  });
});
