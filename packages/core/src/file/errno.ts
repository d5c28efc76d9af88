/** Whether `thrown` is a system error of one of these codes (ENOENT, EEXIST, ...). */
export function hasErrno(thrown: unknown, ...codes: readonly string[]): boolean {
  return typeof thrown === "object" && thrown !== null && "code" in thrown && codes.includes(String(thrown.code));
}
