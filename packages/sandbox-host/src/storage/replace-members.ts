/**
 * The same object with other members in the place of some. A spread would lose the methods of a class, and those of a class
 * with private fields work on the object itself only.
 */
export function replaceMembers<T extends object>(target: T, members: Partial<T>): T {
  return new Proxy(target, {
    get: (_, key) => {
      const value: unknown = key in members ? Reflect.get(members, key) : Reflect.get(target, key, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}
