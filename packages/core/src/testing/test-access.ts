import { generateKeyPairSync } from "node:crypto";
import type { Interceptor } from "@connectrpc/connect";
import type { Clock } from "../async/clock.ts";
import { createLog, type Log } from "../log/log.ts";
import { Secret } from "../secret/secret.ts";
import { createTokenSigner, type TokenGrant } from "../token/token-signer.ts";
import { createTokenVerifier, type TokenVerifier } from "../token/token-verifier.ts";

/** Keys, tokens and a log for tests that go through a server's gate. */
export interface TestAccess {
  readonly verifier: TokenVerifier;
  readonly homeToken: Secret;
  readonly log: Log;
  /** Lines that were logged, as JSON text. */
  readonly logLines: readonly string[];
  /** A token of tenant `acme` with every right, valid for a minute, unless the grant says otherwise. */
  sign(grant?: Partial<TokenGrant>): Secret;
  /** For clients: sends this token with every call; without one, none. */
  bearer(token?: Secret): Interceptor;
}

export function createTestAccess(options: { readonly clock: Clock }): TestAccess {
  const { clock } = options;
  const keys = generateKeyPairSync("ed25519");
  const homeToken = new Secret("test-home-token-0123456789abcdefghij");
  const signer = createTokenSigner({ privateKey: keys.privateKey, issuer: "test-fleet", clock });
  const logLines: string[] = [];
  return {
    verifier: createTokenVerifier({ publicKeys: [keys.publicKey], homeToken, issuer: "test-fleet", clock }),
    homeToken,
    log: createLog({ name: "test", level: "debug", to: { write: (line) => void logLines.push(line) } }),
    logLines,
    sign: (grant = {}) =>
      signer.sign({
        tenant: "acme",
        verbs: ["read", "execute", "files", "turn", "lifecycle", "network", "admin"],
        lifetimeMs: 60_000,
        ...grant,
      }).token,
    bearer: (token) => (next) => async (request) => {
      if (token !== undefined) request.header.set("authorization", `Bearer ${token.reveal()}`);
      return await next(request);
    },
  };
}
