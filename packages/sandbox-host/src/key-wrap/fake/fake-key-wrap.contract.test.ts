import { keyWrapSuite } from "../key-wrap.suite.ts";
import { FakeKey, FakeKeyWrap } from "./fake-key-wrap.ts";

keyWrapSuite("the fake", async () => {
  const first = new FakeKey();
  return {
    wrap: new FakeKeyWrap(first),
    rotated: new FakeKeyWrap(first, new FakeKey()),
    stranger: new FakeKeyWrap(),
  };
});
