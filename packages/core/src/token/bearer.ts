import { Secret } from "../secret/secret.ts";

/** The token of an `Authorization` header; undefined where there is no header or it is of another kind or form. */
export function parseBearer(header: string | null | undefined): Secret | undefined {
  const token = /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i.exec(header ?? "")?.[1];
  return token === undefined ? undefined : new Secret(token);
}
