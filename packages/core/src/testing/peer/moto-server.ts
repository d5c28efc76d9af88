import { startServerProcess, type ServerProcess } from "./server-process.ts";

/** A model of AWS by others. */
export interface MotoServer extends ServerProcess {
  /** Forgets everything that was made. */
  reset(): Promise<void>;
}

export async function startMoto(python: string): Promise<MotoServer> {
  const server = await startServerProcess({
    name: "moto's server",
    program: python,
    argv: (port) => ["-m", "moto.server", "-H", "127.0.0.1", "-p", String(port)],
    // Hundreds of images of others, which would be read again after each reset.
    env: { MOTO_EC2_LOAD_DEFAULT_AMIS: "false" },
    readyPath: "/moto-api/",
  });
  return {
    url: server.url,
    reset: async () => {
      await fetch(`${server.url}/moto-api/reset`, { method: "POST" });
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
