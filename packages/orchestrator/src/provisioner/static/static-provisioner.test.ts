import { describe, expect, it } from "@jest/globals";
import { systemClock } from "@turnbox/core";
import { createStaticProvisioner, type StaticHost } from "./static-provisioner.ts";

const CALL = { signal: new AbortController().signal };
const create = (hosts: readonly StaticHost[]) =>
  createStaticProvisioner({ hosts, tags: { "turnbox-fleet": "f1" }, clock: systemClock });

describe("createStaticProvisioner", () => {
  it("lists all of its machines by id, whatever the order they were given in", async () => {
    await using provisioner = create([
      { instanceId: "b", url: "https://10.0.0.2:9100" },
      { instanceId: "a", url: "https://10.0.0.1:9100" },
    ]);
    const listed = await provisioner.list({ tags: { "turnbox-fleet": "f1" }, states: [] }, CALL);
    expect(listed.map(({ instanceId }) => instanceId)).toEqual(["a", "b"]);
  });

  it.each<[string, readonly StaticHost[]]>([
    ["an id twice", [host("a", "https://h1"), host("a", "https://h2")]],
    ["a url twice", [host("a", "https://h1"), host("b", "https://h1/")]],
    ["something that is no url", [host("a", "h1:9100")]],
  ])("refuses %s", (_what, hosts) => {
    expect(() => create(hosts)).toThrow(expect.objectContaining({ reason: "CONFIG_INVALID" }));
  });

  it("refuses an id that could not be a part of a sandbox id", () => {
    expect(() => create([host("a:b", "https://h1")])).toThrow(expect.objectContaining({ reason: "INVALID_ARGUMENT" }));
  });
});

function host(instanceId: string, url: string): StaticHost {
  return { instanceId, url };
}
