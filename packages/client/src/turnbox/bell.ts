/** Remembers that it was rung until it is reset. */
export interface Bell {
  ring(): void;
  rung(): Promise<undefined>;
  reset(): void;
}

export function createBell(): Bell {
  let ringing = Promise.withResolvers<undefined>();
  return {
    ring: () => {
      ringing.resolve(undefined);
    },
    rung: () => ringing.promise,
    reset: () => {
      ringing = Promise.withResolvers<undefined>();
    },
  };
}
