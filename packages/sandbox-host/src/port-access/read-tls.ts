import { readFile } from "node:fs/promises";
import type { ListenerOptions } from "./port-listener.ts";

/** The certificate of the host, which is used at the addresses of ports as well; null if it serves without TLS. */
export async function readTls(paths: {
  readonly tlsCertificatePath: string | null;
  readonly tlsKeyPath: string | null;
}): Promise<ListenerOptions["tls"]> {
  if (paths.tlsCertificatePath === null || paths.tlsKeyPath === null) return null;
  return { certificate: await readFile(paths.tlsCertificatePath), privateKey: await readFile(paths.tlsKeyPath) };
}
