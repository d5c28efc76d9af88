/** From this size on a message waits for its turn. */
const LARGE_BYTES = 256 * 1024;

/**
 * Lets one large message be parsed in each turn of the event loop, so that what arrives meanwhile is served between two of them
 * and not after all.
 */
export class LargeTurns {
  #last: Promise<void> = Promise.resolve();

  /** Resolves when it is the message's turn. */
  take(): Promise<void> {
    const mine = this.#last.then(nextTurn);
    this.#last = mine;
    return mine;
  }

  static isLarge(bytes: number): boolean {
    return bytes >= LARGE_BYTES;
  }
}

const nextTurn = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });
