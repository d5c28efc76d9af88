import { hash, type KeyObject, timingSafeEqual, verify } from "node:crypto";
import type { Clock } from "../async/clock.ts";
import { LruMap } from "../async/lru-map.ts";
import { invalidArgument, SandboxError } from "../error/sandbox-error.ts";
import type { Secret } from "../secret/secret.ts";
import { parseClaims, type TokenClaims } from "./claims.ts";
import { ACCESS_VERBS, DEFAULT_TENANT, type Principal } from "./principal.ts";
import { TOKEN_HEADER } from "./token-signer.ts";

export interface TokenVerifierOptions {
  /** Ed25519 keys, any of which may have signed: the present one and, while it is being replaced, the last one. */
  readonly publicKeys: readonly KeyObject[];
  /** The token of this home, where one is accepted. */
  readonly homeToken?: Secret;
  /** The fleet's id; tokens of other fleets are refused. */
  readonly issuer: string;
  readonly clock: Clock;
  /** How far the signer's clock may be off. Default 5 s. */
  readonly skewMs?: number;
}

export interface TokenVerifier {
  /**
   * Who holds this token; undefined stands for none. Throws `UNAUTHENTICATED`, and what the ration throws: it is asked before a
   * signature is checked that is not known to be right.
   */
  verify(token: Secret | undefined, ration?: CheckRation): Principal;
}

/** Bounds how many signatures are checked for a peer whose tokens are wrong. */
export interface CheckRation {
  /** Throws if the peer has had its share of wrong ones. */
  take(): void;
  /** The signature was right, and does not count. */
  giveBack(): void;
}

const MAX_TOKEN_LENGTH = 4096;
/** Tokens whose signature is known to be right. One that is forgotten is only verified again. */
const MAX_KNOWN = 1024;
const DEFAULT_SKEW_MS = 5000;

const HOME: Principal = Object.freeze({ kind: "home", tenant: DEFAULT_TENANT, verbs: ACCESS_VERBS });

/** Judges bearer tokens without asking anybody and without waiting. */
export function createTokenVerifier(options: TokenVerifierOptions): TokenVerifier {
  const { publicKeys, homeToken, issuer, clock, skewMs = DEFAULT_SKEW_MS } = options;
  if (publicKeys.some((key) => key.asymmetricKeyType !== "ed25519")) {
    throw invalidArgument("public_keys", "must be Ed25519 keys");
  }
  const homeBytes = homeToken === undefined ? undefined : Buffer.from(homeToken.reveal());

  /** By digest, so that no token is kept. */
  const known = new LruMap<string, Signed>(MAX_KNOWN);

  /** A signature stays what it is, so it is checked once; whether the token holds now is judged each time. */
  const signedBy = (raw: string, ration: CheckRation | undefined): Signed => {
    const digest = hash("sha256", raw, "base64");
    const before = known.get(digest);
    if (before !== undefined) return before;
    ration?.take();
    const claims = verifiedClaims(raw, publicKeys);
    ration?.giveBack();
    if (claims.iss !== issuer) throw unauthenticated("the token is of another fleet");
    const signed = { claims, principal: toPrincipal(claims) };
    known.set(digest, signed);
    return signed;
  };

  const judge = ({ claims, principal }: Signed): Principal => {
    const nowMs = clock.nowMs();
    if (nowMs >= claims.exp * 1000 + skewMs) throw unauthenticated("the token has expired");
    if (nowMs + skewMs < Math.max(claims.iat, claims.nbf ?? 0) * 1000)
      throw unauthenticated("the token is not valid yet");
    return principal;
  };

  return {
    verify: (token, ration) => {
      if (token === undefined) throw unauthenticated("there is no bearer token");
      const raw = token.reveal();
      if (raw.length > MAX_TOKEN_LENGTH) throw unauthenticated("the token is malformed");
      if (homeBytes !== undefined && isSame(raw, homeBytes)) return HOME;
      return judge(signedBy(raw, ration));
    },
  };
}

/** What a token with a right signature says. */
interface Signed {
  readonly claims: TokenClaims;
  readonly principal: Principal;
}

function toPrincipal({ tenant, sandbox, verbs, exp }: TokenClaims): Principal {
  return Object.freeze({
    kind: "scoped",
    tenant,
    ...(sandbox === undefined ? {} : { sandbox }),
    verbs: Object.freeze([...verbs]),
    expiresAtMs: exp * 1000,
  });
}

/** The claims of a token that one of the keys signed. The signature is checked before anything inside is believed. */
function verifiedClaims(raw: string, publicKeys: readonly KeyObject[]): TokenClaims {
  const [header, payload, signature, ...rest] = raw.split(".");
  if (payload === undefined || signature === undefined || rest.length > 0)
    throw unauthenticated("the token is malformed");
  // One algorithm and one spelling: a token cannot choose how it is verified ("none" least of all).
  if (header !== TOKEN_HEADER) throw unauthenticated("the token is not signed the way this server accepts");
  const signed = Buffer.from(`${header}.${payload}`);
  const bytes = decode(signature);
  if (bytes?.length !== 64 || !publicKeys.some((key) => verify(null, signed, key, bytes))) {
    throw unauthenticated("the token's signature is wrong");
  }
  const claims = parseClaims(parseJson(decode(payload)));
  if (claims === undefined) throw unauthenticated("the token is malformed");
  return claims;
}

/** Strict base64url: Node's decoder skips what it does not know, which would give one token many spellings. */
function decode(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, "base64url");
  return bytes.toString("base64url") === text ? bytes : undefined;
}

function parseJson(bytes: Buffer | undefined): unknown {
  try {
    return bytes === undefined ? undefined : (JSON.parse(bytes.toString("utf8")) as unknown);
  } catch {
    return undefined;
  }
}

/** Takes the same time for all texts of the right length, which is no secret. */
function isSame(text: string, expected: Buffer): boolean {
  const bytes = Buffer.from(text);
  return bytes.length === expected.length && timingSafeEqual(bytes, expected);
}

const unauthenticated = (message: string): SandboxError => new SandboxError("UNAUTHENTICATED", message);
