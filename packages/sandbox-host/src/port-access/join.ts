import { type Duplex, pipeline } from "node:stream";

/** Two connections that pass on to one another what comes. */
export interface Joint {
  /** Ends both if they may not be joined any more. */
  check(): void;
}

/**
 * Each end of one side goes on to the other; what breaks breaks both. Nothing passes once `isOpen` is false: it is asked for
 * every piece.
 */
export function join(a: Duplex, b: Duplex, isOpen: () => boolean): Joint {
  const end = (): void => {
    a.destroy();
    b.destroy();
  };
  const check = (): void => {
    if (!isOpen()) end();
  };
  for (const side of [a, b]) side.on("data", check);
  pipeline(a, b, (err) => {
    if (err) end();
  });
  pipeline(b, a, end);
  return { check };
}
