import { connect, createServer, type Socket } from "node:net";
import { type ConnectionFactory, createHttp2Connection } from "../../packages/client/src/connection.ts";

/** A way to hosts that can be cut. */
export interface CutProxy extends AsyncDisposable {
  /** Makes a client's connections to hosts through here. */
  readonly connect: ConnectionFactory;
  /** Breaks every connection that is open, as a network does; new ones get through. Answers with how many there were. */
  cut(): number;
}

/** For one host at a time: the last address that was asked for. */
export async function startCutProxy(): Promise<CutProxy> {
  const sockets = new Set<Socket>();
  let target: URL | undefined;
  const proxy = createServer((near) => {
    const far = connect(Number(target?.port), target?.hostname);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on("error", () => undefined);
      one.once("close", () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const { port } = proxy.address() as { readonly port: number };
  const cut = (): number => {
    const open = sockets.size / 2;
    for (const socket of sockets) socket.resetAndDestroy();
    return open;
  };
  return {
    connect: (endpoint, peer) => {
      if (peer !== "host") return createHttp2Connection(endpoint, peer);
      target = new URL(endpoint.url);
      return createHttp2Connection({ ...endpoint, url: `http://127.0.0.1:${port}` }, peer);
    },
    cut,
    [Symbol.asyncDispose]: async () => {
      cut();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}
