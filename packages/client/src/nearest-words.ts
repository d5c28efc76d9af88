import { editDistance } from "@turnbox/core";

/** More slips than this are another word. */
const MAX_DISTANCE = 2;
const SHOWN = 3;

/** The candidates closest to a word that is not there, at most three of them. */
export function nearestWords(word: string, candidates: Iterable<string>): readonly string[] {
  const bound = Math.min(MAX_DISTANCE, Math.floor(word.length / 2));
  const similar = [...new Set(candidates)]
    .filter((candidate) => Math.abs(candidate.length - word.length) <= bound)
    .map((candidate) => ({ candidate, distance: editDistance(word, candidate) }))
    .filter(({ distance }) => distance > 0 && distance <= bound);
  const least = Math.min(...similar.map(({ distance }) => distance));
  return similar
    .filter(({ distance }) => distance === least)
    .map(({ candidate }) => candidate)
    .sort()
    .slice(0, SHOWN);
}
