/** Runs what it is given one after the other, in the order of the calls. A failure does not hold up the next. */
export interface Serial {
  run<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Settles when all work that was given so far has ended. */
  idle(): Promise<void>;
}

export function createSerial(): Serial {
  let last: Promise<unknown> = Promise.resolve();
  return {
    run: (work) => {
      const mine = last.then(work, work);
      last = mine.catch(() => undefined);
      return mine;
    },
    idle: async () => {
      await last;
    },
  };
}
