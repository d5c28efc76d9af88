import { gunzipSync } from "node:zlib";

/**
 * A static x86-64 program of 432 bytes: it swaps `d` and `link` in its directory for ever, by rename(2):
 *
 *     again: rename("d", "real"); rename("link", "d"); rename("d", "link"); rename("real", "d"); goto again
 */
export const SWAPPER = gunzipSync(
  Buffer.from(
    "H4sIAAAAAAACA6t39XFjYmRkgAEmBjsGEK+CwQHMd4CKf2BAAAcGC6AaBwZmoGqQWnawegiA6YPRSVBxGA2zyaPX1h9MmXoBqR1BQIKfFSjo" +
      "CBE0RhFUhQiqoggKQQQ5EYKvV6UwFKUm5jDkZOZlMzDoFWcUlxSVJCYx6JWkVpQwUAVwQ/3AjuFfVH8yoPkXmc+MxdxbUFqQgH4A7PiuJ7AB" +
      "AAA=",
    "base64",
  ),
);

const PLACE = Buffer.from("CANARYPATH\0");
const MAX_PATH_BYTES = 250;

/**
 * An x86-64 shared library that makes a file as soon as any process loads it. Its only code, as DT_INIT:
 *
 *     open(path, O_CREAT | O_WRONLY, 0644)
 */
export function libraryThatMakes(path: string): Buffer {
  const library = Buffer.from(LIBRARY);
  const bytes = Buffer.from(`${path}\0`);
  if (bytes.length > MAX_PATH_BYTES) throw new Error(`the path is too long: ${path}`);
  bytes.copy(library, library.indexOf(PLACE));
  return library;
}

const LIBRARY = gunzipSync(
  Buffer.from(
    "H4sIAAAAAAACA6t39XFjYmRkgAFmBjsGBI+BwQFKRzAji1kA1TkwcDCwg9WyMuAGEUyoNIMAhALpY0OWF0KlDzCg0jB9TCTq42BA2McEpYkB" +
      "jGArWRjM0TUkpaZn5jGEhwXtABnn0WsLctg+RyCxawlQLT9rVFz8YWdHP8egyADHEA+GEQp4oDQs/Fig/BdQGpZmDKDybMgBDwRcUC47lOaG" +
      "0hL08oBecUZxSVFJYhKDXkZicQaDXkplXnFlLoQuKWLQK0mtKGHQS82ITytKzE0FiyfmZiZTyXpuaBgxoYUbjBZhQOQH5HQOC2dBqBlMaOEK" +
      "ow3g+R0ixIEWvpJQOSa0eILR7FjyCzJQRMrjyOkARssz4tevjpRnsZYjaIADjW8ItRtWbMHLCSbU8oEZTb8AknuYsdgjARW0IuB/AMK6wgBY" +
      "BQAA",
    "base64",
  ),
);
