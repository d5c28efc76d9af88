/** Does the work of a method, with whatever goes around it. */
export type Around = <R>(method: string, work: () => Promise<R>) => Promise<R>;

type AsyncMethod = (...args: never[]) => Promise<unknown>;

/** The names of an object's methods that answer with a promise. */
export type AsyncMethodOf<T> = {
  [Name in keyof T]: T[Name] extends AsyncMethod ? Name : never;
}[keyof T] &
  string;

/**
 * The same object with something around some of its methods: for measuring a port without its adapters knowing. All else,
 * what changes later too, is the object's own.
 */
export function aroundMethods<T extends object>(target: T, names: readonly AsyncMethodOf<T>[], around: Around): T {
  const wrapped = new Map<string | symbol, unknown>(
    names.map((name) => [
      name,
      (...args: unknown[]): Promise<unknown> =>
        around(name, () => (target[name] as (...given: unknown[]) => Promise<unknown>).apply(target, args)),
    ]),
  );
  return new Proxy(target, {
    get: (_, key) => {
      if (wrapped.has(key)) return wrapped.get(key);
      const value: unknown = Reflect.get(target, key, target);
      // Methods of classes with private fields work on the object itself only.
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}
