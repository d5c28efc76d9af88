import { isIP } from "node:net";

/** The address as it is reached from elsewhere: one that means the host itself gets the name by which the host is reached. */
export function onHost(address: string, hostAddress: string): string {
  const at = address.lastIndexOf(":");
  const hostAt = hostAddress.lastIndexOf(":");
  if (at === -1 || hostAt === -1 || !isItself(address.slice(0, at))) return address;
  return `${hostAddress.slice(0, hostAt)}${address.slice(at)}`;
}

function isItself(name: string): boolean {
  const bare = name.replace(/^\[|\]$/g, "");
  if (isIP(bare) === 4) return bare.startsWith("127.") || bare === "0.0.0.0";
  return bare === "localhost" || bare === "::1" || bare === "::";
}
