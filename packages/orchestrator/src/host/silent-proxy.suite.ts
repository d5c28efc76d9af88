import { connect, createServer, type Socket } from "node:net";
import { listenOn } from "./listen-on.suite.ts";

/** Stands between a caller and a host, and can fall silent as a network does that drops packets: neither side gets a sign of it. */
export interface SilentProxy extends AsyncDisposable {
  readonly url: string;
  /** How many connections have been made through it. */
  readonly connections: number;
  /** From now on nothing passes over the connections there are, in either direction; later ones work. */
  goSilent(): void;
  /** The same, and there are no later ones. */
  goAway(): void;
}

export async function startSilentProxy(targetPort: number): Promise<SilentProxy> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((near) => {
    connections += 1;
    const far = connect(targetPort, "127.0.0.1");
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
    }
    near.pipe(far);
    far.pipe(near);
  });
  const port = await listenOn(server);
  const goSilent = (): void => {
    for (const socket of sockets) {
      socket.unpipe();
      socket.resume();
    }
  };
  return {
    url: `http://127.0.0.1:${port}`,
    get connections() {
      return connections;
    },
    goSilent,
    goAway: () => {
      goSilent();
      server.close();
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
  };
}
