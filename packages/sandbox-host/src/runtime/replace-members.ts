/** The same object with other members in place of some. All else is the object's own, which may be of a class with private fields. */
export function replaceMembers<T extends object>(target: T, members: Partial<T>): T {
  return new Proxy(target, {
    get: (_, key): unknown => {
      if (Object.hasOwn(members, key)) return Reflect.get(members, key);
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}
