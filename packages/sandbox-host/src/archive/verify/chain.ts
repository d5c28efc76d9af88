import { type Manifest, streamsOf } from "../manifest/manifest.ts";

/** A stream whose parent the manifest does not hold: it cannot be received. */
export interface BrokenLink {
  readonly guid: string;
  readonly parentGuid: string;
  readonly object: string;
}

/** The streams that the archive holds no way to, each with the parent that is missing. */
export function brokenLinks(manifest: Manifest): readonly BrokenLink[] {
  const known = new Set([...streamsOf(manifest)].map(({ guid }) => guid));
  return [...streamsOf(manifest)].flatMap(({ guid, parentGuid, object }) =>
    parentGuid === null || (known.has(parentGuid) && parentGuid !== guid)
      ? []
      : [{ guid, parentGuid, object: object.id }],
  );
}
