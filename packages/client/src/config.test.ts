import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { isTrustedHost, parseEnvironment, resolveServer, resolveUrl, type ServerFlags } from "./config.ts";

let home: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "turnbox-config-"));
});

afterEach(async () => {
  await rm(home, { recursive: true, force: true });
});

const writeToken = async (token: string): Promise<void> => {
  await writeFile(join(home, "token"), token);
};
const writeRecord = async (record: unknown): Promise<void> => {
  await writeFile(join(home, "server.json"), typeof record === "string" ? record : JSON.stringify(record));
};
const environment = (variables: Record<string, string> = {}) => parseEnvironment({ TURNBOX_HOME: home, ...variables });
const reasonOf = (flags: ServerFlags): unknown => {
  try {
    return resolveServer(flags, environment());
  } catch (thrown) {
    return (thrown as { reason?: unknown }).reason;
  }
};

describe("parseEnvironment", () => {
  it("has a home in the user's own, and no port, where nothing is set", () => {
    const parsed = parseEnvironment({ TURNBOX_HOME: "", TURNBOX_PORT: "" });
    expect(parsed).toEqual({
      home: join(homedir(), ".turnbox"),
      server: {},
      color: "allowed",
      charset: "ascii",
      variables: { TURNBOX_HOME: "", TURNBOX_PORT: "" },
    });
  });

  it("makes the home absolute and reads the port", () => {
    const parsed = parseEnvironment({
      TURNBOX_HOME: "some/where",
      TURNBOX_PORT: "7800",
      NO_COLOR: "1",
      GONE: undefined,
    });
    expect(parsed).toMatchObject({ home: join(process.cwd(), "some/where"), port: 7800, color: "refused" });
    expect(parsed.variables).not.toHaveProperty("GONE");
  });

  it.each([
    [{}, "allowed"],
    [{ NO_COLOR: "" }, "allowed"],
    [{ NO_COLOR: "1" }, "refused"],
    [{ TERM: "dumb" }, "refused"],
    [{ FORCE_COLOR: "1", NO_COLOR: "1" }, "forced"],
    [{ FORCE_COLOR: "" }, "forced"],
    [{ FORCE_COLOR: "0" }, "refused"],
    [{ FORCE_COLOR: "false" }, "refused"],
  ])("reads of %j that colours are %s", (variables, color) => {
    expect(parseEnvironment(variables).color).toBe(color);
  });

  it.each([
    [{ LANG: "de_AT.UTF-8" }, "utf-8"],
    [{ LANG: "C.utf8" }, "utf-8"],
    [{ LANG: "en_US.UTF-8", LC_ALL: "C" }, "ascii"],
    [{ LANG: "C", LC_CTYPE: "en_US.UTF-8", LC_ALL: "" }, "utf-8"],
    [{ LANG: "POSIX" }, "ascii"],
    [{}, "ascii"],
  ])("reads the character set of %j as %s", (variables, charset) => {
    expect(parseEnvironment(variables).charset).toBe(charset);
  });

  it.each(["x", "-1", "65536", "80.5", " 80"])("refuses the port %j by the name of its variable", (port) => {
    expect(() => parseEnvironment({ TURNBOX_PORT: port })).toThrow(/^TURNBOX_PORT: /);
  });
});

describe("resolveUrl", () => {
  it("takes --url, then TURNBOX_PORT, then what the server wrote down, then 7700", async () => {
    expect(resolveUrl({}, environment())).toBe("http://127.0.0.1:7700");
    await writeRecord({ url: "http://127.0.0.1:7801", pid: 4242, version: "1" });
    expect(resolveUrl({}, environment())).toBe("http://127.0.0.1:7801");
    expect(resolveUrl({}, environment({ TURNBOX_PORT: "0" }))).toBe("http://127.0.0.1:7801");
    expect(resolveUrl({}, environment({ TURNBOX_PORT: "7802" }))).toBe("http://127.0.0.1:7802");
    expect(resolveUrl({ url: "https://box.example" }, environment({ TURNBOX_PORT: "7802" }))).toBe(
      "https://box.example",
    );
  });

  it("takes TURNBOX_URL before anything of this machine, and --url before that", () => {
    const variables = { TURNBOX_URL: "https://box.example", TURNBOX_PORT: "7802" };
    expect(resolveUrl({}, environment(variables))).toBe("https://box.example");
    expect(resolveUrl({ url: "http://127.0.0.1:1" }, environment(variables))).toBe("http://127.0.0.1:1");
    expect(resolveUrl({}, environment({ TURNBOX_URL: "" }))).toBe("http://127.0.0.1:7700");
  });

  it.each(["", "not json", "[]", "null", '{"url":1}', '{"url":"http://x","pid":1}', '{"url":"http://x","pid":"9"}'])(
    "says that the record %j is broken",
    async (record) => {
      await writeRecord(record);
      expect(() => resolveUrl({}, environment())).toThrow(expect.objectContaining({ reason: "CONFIG_INVALID" }));
    },
  );

  it.each(["127.0.0.1:7700", "ftp://x", "http://user:secret@x", ""])("refuses the address %j", (url) => {
    expect(() => resolveUrl({ url }, environment())).toThrow(expect.objectContaining({ reason: "INVALID_ARGUMENT" }));
  });
});

describe("resolveServer", () => {
  it("takes --token, then --token-file, then the home's", async () => {
    await writeToken("from-home\n");
    const tokenFile = join(home, "other");
    await writeFile(tokenFile, "from-file\n");
    expect(resolveServer({}, environment()).token).toBe("from-home");
    expect(resolveServer({ tokenFile }, environment()).token).toBe("from-file");
    expect(resolveServer({ tokenFile, token: "given" }, environment()).token).toBe("given");
  });

  it("takes TURNBOX_TOKEN, then TURNBOX_TOKEN_FILE, where no option says otherwise", async () => {
    await writeToken("from-home\n");
    const tokenFile = join(home, "other");
    await writeFile(tokenFile, "from-file\n");
    const file = { TURNBOX_TOKEN_FILE: tokenFile };
    const both = { ...file, TURNBOX_TOKEN: "from-variable" };
    expect(resolveServer({}, environment(file)).token).toBe("from-file");
    expect(resolveServer({}, environment(both)).token).toBe("from-variable");
    expect(resolveServer({ tokenFile }, environment({ TURNBOX_TOKEN: "from-variable" })).token).toBe("from-file");
    expect(resolveServer({ token: "given" }, environment(both)).token).toBe("given");
    expect(resolveServer({}, environment({ ...both, TURNBOX_URL: "https://box.example" }))).toEqual({
      url: "https://box.example",
      token: "from-variable",
    });
    expect(() => resolveServer({}, environment({ TURNBOX_TOKEN_FILE: join(home, "nope") }))).toThrow(
      /^TURNBOX_TOKEN_FILE: /,
    );
  });

  it("gives the home's token to this machine only", async () => {
    await writeToken("secret");
    for (const url of ["http://localhost:1", "http://127.0.0.2:1", "http://[::1]:1"]) {
      expect(resolveServer({ url }, environment()).token).toBe("secret");
    }
    for (const url of ["http://10.0.0.1", "https://127.0.0.1.example.org", "https://localhost.example.org"]) {
      expect(reasonOf({ url })).toBe("UNAUTHENTICATED");
    }
  });

  it("tells a home without a token from a token file that is missing or empty", async () => {
    expect(reasonOf({})).toBe("SERVER_UNREACHABLE");
    expect(reasonOf({ tokenFile: join(home, "nope") })).toBe("INVALID_ARGUMENT");
    await writeToken("\n");
    expect(reasonOf({})).toBe("UNAUTHENTICATED");
  });
});

describe("isTrustedHost", () => {
  it.each([
    ["http://127.0.0.1:9000", "http://127.0.0.1:7700", true],
    ["http://10.0.0.1:9000", "http://127.0.0.1:7700", false],
    ["http://127.0.0.1:9000", "https://box.example", false],
    ["not a url", "http://127.0.0.1:7700", false],
  ])("judges the host %s of the server %s", (hostUrl, url, verdict) => {
    expect(isTrustedHost(hostUrl, { url, token: "t" })).toBe(verdict);
  });
});
