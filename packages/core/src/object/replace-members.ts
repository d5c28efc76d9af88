/**
 * The same object with other members in place of some. A spread would lose the methods of a class, and those of a class with private
 * fields work on the object itself only.
 */
export function replaceMembers<T extends object>(target: T, members: Partial<T>): T {
  return new Proxy(target, {
    get: (_, key): unknown => {
      if (Object.hasOwn(members, key)) return Reflect.get(members, key);
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}
