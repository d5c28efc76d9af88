import type { Server } from "node:net";

/** Lets a server listen on a free port of this machine. Returns the port. */
export async function listenOn(server: Pick<Server, "listen" | "once" | "address">): Promise<number> {
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("the server has no port");
  return address.port;
}
