import { type Duplex, pipeline } from "node:stream";

/** Two connections whose bytes are passed on to one another. */
export interface Joint {
  /** Ends both if they may not be joined any more. */
  check(): void;
}

/**
 * The end of one side is passed on to the other; if one breaks, both do. Nothing passes once `isOpen` is false: it is called for
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
