import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { startTestHost, type TestHost } from "../compose.suite.ts";
import { accessTo, reasonOf } from "./client.suite.ts";

const clientOf = ({ host }: TestHost) => accessTo(host).client(HostService);

/** A small root filesystem as a tar. */
async function archiveWith(text: string): Promise<Buffer> {
  const directory = await mkdtemp(join(tmpdir(), "turnbox-archive-"));
  try {
    await mkdir(join(directory, "root/bin"), { recursive: true });
    await writeFile(join(directory, "root/bin/bash"), text, { mode: 0o755 });
    await promisify(execFile)("tar", ["-cf", join(directory, "t.tar"), "-C", join(directory, "root"), "."]);
    return await readFile(join(directory, "t.tar"));
  } finally {
    await rm(directory, { recursive: true });
  }
}

async function* importOf(name: string, idempotencyKey: string, data: Buffer) {
  yield { part: { case: "header", value: { name, idempotencyKey } } as const };
  for (let start = 0; start < data.length; start += 4096) {
    yield { part: { case: "data", value: data.subarray(start, start + 4096) } as const };
  }
}

describe("templates by their keys", () => {
  it("imports once for a key, reads a replay to its end, and refuses another archive or name under it", async () => {
    await using test = await startTestHost();
    const client = clientOf(test);
    const [one, two] = [await archiveWith("one"), await archiveWith("two")];
    const first = await client.importTemplate(importOf("base", "k", one));
    expect(await client.importTemplate(importOf("base", "k", one))).toEqual(first);
    expect(await reasonOf(client.importTemplate(importOf("base", "k", two)))).toBe("IDEMPOTENCY_CONFLICT");
    expect(await reasonOf(client.importTemplate(importOf("other", "k", one)))).toBe("IDEMPOTENCY_CONFLICT");
    const { templates } = await client.listTemplates({});
    expect(templates.map(({ name }) => name)).toEqual(["base", "mini"]);
  });

  it("deletes once for a key", async () => {
    await using test = await startTestHost();
    const client = clientOf(test);
    const { template } = await client.importTemplate(importOf("base", "", await archiveWith("one")));
    const request = { name: "base", digest: template?.digest ?? "", idempotencyKey: "d" };
    await client.deleteTemplate(request);
    await client.deleteTemplate(request);
    expect(await reasonOf(client.deleteTemplate({ ...request, idempotencyKey: "" }))).toBe("TEMPLATE_NOT_FOUND");
    expect(await reasonOf(client.deleteTemplate({ ...request, name: "mini" }))).toBe("IDEMPOTENCY_CONFLICT");
  });
});
