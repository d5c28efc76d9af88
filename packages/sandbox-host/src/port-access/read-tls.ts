import { readFile } from "node:fs/promises";
import type { ListenerOptions } from "./port-listener.ts";

/** The certificate that the host serves with, also at the addresses of ports; null where it serves without. */
export async function readTls(paths: {
  readonly tlsCertificatePath: string | null;
  readonly tlsKeyPath: string | null;
}): Promise<ListenerOptions["tls"]> {
  if (paths.tlsCertificatePath === null || paths.tlsKeyPath === null) return null;
  return { certificate: await readFile(paths.tlsCertificatePath), privateKey: await readFile(paths.tlsKeyPath) };
}
