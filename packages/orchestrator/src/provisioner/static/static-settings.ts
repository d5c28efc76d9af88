import { SandboxError } from "@turnbox/core";

/** A machine of a fixed list. */
export interface NamedHost {
  readonly instanceId: string;
  readonly url: string;
}

/** Reads `ID=URL`. */
export function parseStaticHost(text: string): NamedHost {
  const at = text.indexOf("=");
  if (at < 1) throw new SandboxError("CONFIG_INVALID", `staticHosts: ${JSON.stringify(text)} must be ID=URL`);
  return { instanceId: text.slice(0, at), url: text.slice(at + 1) };
}
