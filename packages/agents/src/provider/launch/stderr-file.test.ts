import { expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/client";
import { createStderrFile } from "./stderr-file.ts";

/** A file of a sandbox, of which a test can hold up the reading. */
function newFile(content: string) {
  let text: string | undefined = content;
  const holds: Promise<void>[] = [];
  const there = (): string => {
    if (text === undefined) throw new SandboxError("FILE_NOT_FOUND", "no file");
    return text;
  };
  const files = {
    stat: async () => ({ sizeBytes: Buffer.byteLength(await Promise.resolve(there())) }),
    read: async () => {
      await holds.shift();
      return Buffer.from(there());
    },
    remove: async () => {
      await Promise.resolve();
      text = undefined;
    },
  };
  return {
    isThere: () => text !== undefined,
    holdNextRead: () => {
      const hold = Promise.withResolvers<void>();
      holds.push(hold.promise);
      return hold.resolve;
    },
    stderr: createStderrFile(files as unknown as Parameters<typeof createStderrFile>[0], "/tmp/e"),
  };
}

it("comes from the file, and from memory when the file has gone", async () => {
  const { stderr, isThere } = newFile("words\n");
  expect(await stderr.tail()).toBe("words\n");
  await stderr.settle();
  expect([await stderr.tail(), isThere()]).toEqual(["words\n", false]);
});

it("comes from memory for a reader of the file when it went", async () => {
  const { stderr, holdNextRead, isThere } = newFile("last words\n");
  const goOn = holdNextRead();
  const reading = stderr.tail();
  await stderr.settle();
  expect(isThere()).toBe(false);
  goOn();
  expect(await reading).toBe("last words\n");
});
