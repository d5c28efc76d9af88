/** Whether `version` is at least `minimum`, number by number: 1.10 is newer than 1.9. */
export function isAtLeast(version: string, minimum: string): boolean {
  const [own, wanted] = [numbersOf(version), numbersOf(minimum)];
  for (const [index, number] of wanted.entries()) {
    const difference = (own[index] ?? 0) - number;
    if (difference !== 0) return difference > 0;
  }
  return true;
}

const numbersOf = (version: string): readonly number[] => (version.match(/\d+/g) ?? []).map(Number);
