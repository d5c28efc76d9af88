/** More slips than this are another word. */
const MAX_DISTANCE = 2;
const SHOWN = 3;

/** The candidates closest to a word that is not there, at most three of them. */
export function nearestWords(word: string, candidates: Iterable<string>): readonly string[] {
  const bound = Math.min(MAX_DISTANCE, Math.floor(word.length / 2));
  const similar = [...new Set(candidates)]
    .filter((candidate) => Math.abs(candidate.length - word.length) <= bound)
    .map((candidate) => ({ candidate, distance: distanceOf(word, candidate) }))
    .filter(({ distance }) => distance > 0 && distance <= bound);
  const least = Math.min(...similar.map(({ distance }) => distance));
  return similar
    .filter(({ distance }) => distance === least)
    .map(({ candidate }) => candidate)
    .sort()
    .slice(0, SHOWN);
}

/** How many characters have to be put in, taken out, replaced or swapped with their neighbour. */
function distanceOf(from: string, to: string): number {
  const rows: number[][] = [Array.from({ length: to.length + 1 }, (_, index) => index)];
  const at = (row: number, column: number): number => rows[row]?.[column] ?? Infinity;
  for (let row = 1; row <= from.length; row += 1) {
    rows[row] = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwap = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      rows[row]?.push(
        Math.min(
          at(row - 1, column) + 1,
          at(row, column - 1) + 1,
          at(row - 1, column - 1) + (isSame ? 0 : 1),
          isSwap ? at(row - 2, column - 2) + 1 : Infinity,
        ),
      );
    }
  }
  return at(from.length, to.length);
}
