import { type KeyObject, sign } from "node:crypto";
import type { Clock } from "../async/clock.ts";
import { invalidArgument } from "../error/sandbox-error.ts";
import { randomToken } from "../id/token.ts";
import { Secret } from "../secret/secret.ts";
import { isTenant, parseClaims, type TokenClaims } from "./claims.ts";
import type { AccessVerb } from "./principal.ts";

/** Tokens are for a piece of work, not for keeps. */
export const MAX_TOKEN_LIFETIME_MS = 24 * 3_600_000;

export interface TokenGrant {
  readonly tenant: string;
  /** Binds the token to one session. */
  readonly sandbox?: string;
  readonly verbs: readonly AccessVerb[];
  /** Up to 24 hours. */
  readonly lifetimeMs: number;
  /** The token ends then at the latest: the end of the token on whose strength it is granted. */
  readonly notAfterMs?: number;
}

export interface SignedToken {
  readonly token: Secret;
  readonly expiresAtMs: number;
  readonly id: string;
}

export interface TokenSigner {
  sign(grant: TokenGrant): SignedToken;
}

export interface TokenSignerOptions {
  /** An Ed25519 key. */
  readonly privateKey: KeyObject;
  /** The fleet's id, which verifiers expect. */
  readonly issuer: string;
  readonly clock: Clock;
}

/** The first part of every token. Nothing but this is ever accepted. */
export const TOKEN_HEADER = encode({ alg: "EdDSA", typ: "JWT" });

/**
 * Makes compact JWTs signed with Ed25519. Signing and verifying use the synchronous functions of node:crypto: they take
 * microseconds, while the asynchronous ones and webcrypto wait for a thread of the I/O pool, which stuck agent files can
 * hold for ever.
 */
export function createTokenSigner({ privateKey, issuer, clock }: TokenSignerOptions): TokenSigner {
  if (privateKey.asymmetricKeyType !== "ed25519") throw invalidArgument("private_key", "must be an Ed25519 key");
  return {
    sign: (grant) => {
      if (!isTenant(grant.tenant)) throw invalidArgument("tenant", "must follow the rule of session ids");
      if (!(grant.lifetimeMs > 0 && grant.lifetimeMs <= MAX_TOKEN_LIFETIME_MS)) {
        throw invalidArgument("lifetime", "must be more than nothing and at most 24 hours");
      }
      const nowMs = clock.nowMs();
      const claims: TokenClaims = {
        iss: issuer,
        tenant: grant.tenant,
        ...(grant.sandbox === undefined ? {} : { sandbox: grant.sandbox }),
        verbs: [...grant.verbs],
        iat: Math.floor(nowMs / 1000),
        exp: Math.min(
          Math.ceil((nowMs + grant.lifetimeMs) / 1000),
          Math.floor((grant.notAfterMs ?? Number.POSITIVE_INFINITY) / 1000),
        ),
        jti: randomToken(26),
      };
      if (parseClaims(claims) === undefined) throw invalidArgument("sandbox", "must follow the rule of session ids");
      const signed = `${TOKEN_HEADER}.${encode(claims)}`;
      const signature = sign(null, Buffer.from(signed), privateKey).toString("base64url");
      return { token: new Secret(`${signed}.${signature}`), expiresAtMs: claims.exp * 1000, id: claims.jti };
    },
  };
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
