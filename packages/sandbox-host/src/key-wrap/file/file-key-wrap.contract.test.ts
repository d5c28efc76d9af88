import { randomBytes } from "node:crypto";
import { keyWrapSuite } from "../key-wrap.suite.ts";
import { FileKeyWrap } from "./file-key-wrap.ts";

let count = 0;
const key = (): { readonly id: string; readonly bytes: Buffer } => {
  count += 1;
  return { id: `file:${count}`, bytes: randomBytes(32) };
};

keyWrapSuite("a key file", async () => {
  const first = key();
  return {
    wrap: new FileKeyWrap([first]),
    rotated: new FileKeyWrap([first, key()]),
    stranger: new FileKeyWrap([key()]),
  };
});
