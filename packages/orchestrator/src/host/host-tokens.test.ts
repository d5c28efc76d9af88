import { generateKeyPairSync } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { createTokenSigner, createTokenVerifier } from "@turnbox/core";
import { createManualClock } from "@turnbox/core/testing";
import { createHostTokens } from "./host-tokens.ts";

describe("createHostTokens", () => {
  it("speaks for one tenant without administration, or for the fleet with all of it, and renews in time", async () => {
    const clock = createManualClock();
    const { privateKey, publicKey } = generateKeyPairSync("ed25519");
    const tokenFor = createHostTokens({ signer: createTokenSigner({ privateKey, issuer: "f1", clock }), clock });
    const verifier = createTokenVerifier({ publicKeys: [publicKey], issuer: "f1", clock });
    const first = tokenFor({ kind: "tenant", tenant: "t1" });
    expect(verifier.verify(first)).toMatchObject({ tenant: "t1" });
    expect(verifier.verify(first).verbs).not.toContain("admin");
    expect(verifier.verify(tokenFor({ kind: "fleet" }))).toMatchObject({ tenant: "*" });
    expect(verifier.verify(tokenFor({ kind: "fleet" })).verbs).not.toContain("network");
    expect(tokenFor({ kind: "tenant", tenant: "t1" })).toBe(first);
    await clock.advance(6 * 60_000);
    const renewed = tokenFor({ kind: "tenant", tenant: "t1" });
    expect(renewed).not.toBe(first);
    await clock.advance(6 * 60_000);
    expect(verifier.verify(renewed)).toMatchObject({ tenant: "t1" });
    expect(() => verifier.verify(first)).toThrow("expired");
  });
});
