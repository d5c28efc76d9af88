import { createHash, randomBytes } from "node:crypto";
import { afterAll, beforeEach, describe, expect, it } from "@jest/globals";
import { createLog, randomToken, type SandboxError, Secret } from "@turnbox/core";
import type { ObjectStore } from "../object-store.ts";
import { call, expectReason, MIB, Noise, read, readText } from "../suite/suite-fixture.suite.ts";
import { type Fault, type FaultProxy, startFaultProxy } from "./s3-fault-proxy.suite.ts";
import type { S3Options } from "./s3-options.ts";
import { listUploads, openTestStore, type S3Server, startMotoS3, startVersityS3 } from "./s3-servers.suite.ts";

const SLOW_DOWN: Fault = { kind: "answer", status: 503, code: "SlowDown" };
const FAILED: Fault = { kind: "answer", status: 500, code: "InternalError" };
const IMPATIENT: Partial<S3Options> = { limits: { patienceMs: 200 } };
const LARGE_BYTES = 40 * MIB;

const versity = await startVersityS3();
const moto = await startMotoS3();

if (versity === undefined) it.skip("the S3 adapter against versitygw", () => undefined);
else faultsOn(versity);
if (moto === undefined) it.skip("the S3 adapter against moto", () => undefined);
else unfitServers(moto);

interface Opened {
  readonly proxy: FaultProxy;
  readonly store: ObjectStore;
  readonly key: string;
}

function faultsOn(server: S3Server): void {
  const opened: AsyncDisposable[] = [];
  const open = async (more: Partial<S3Options> = {}): Promise<Opened> => {
    const proxy = await startFaultProxy(server.url);
    const store = openTestStore({ ...server, url: proxy.url }, more);
    opened.push(store, proxy);
    return { proxy, store, key: `faults/${randomToken(12)}` };
  };
  beforeEach(async () => {
    for (const one of opened.splice(0)) await one[Symbol.asyncDispose]();
  });
  afterAll(async () => {
    for (const one of [...opened, server]) await one[Symbol.asyncDispose]();
  });

  describe("the S3 adapter on a server that fails for a while", () => {
    it("tries again if it is throttled or the server fails, for each operation", async () => {
      const { proxy, store, key } = await open();
      for (const operation of ["put", "get", "head", "list", "delete"] as const)
        proxy.next(operation, SLOW_DOWN, FAILED);
      await store.put(key, Buffer.from("x"), {}, call);
      expect(await readText(store, key)).toBe("x");
      expect(await store.stat(key, call)).toMatchObject({ bytes: 1 });
      expect((await store.list(key, {}, call)).objects).toHaveLength(1);
      await store.delete([key], call);
      for (const operation of ["put", "get", "head", "list", "delete"] as const) expect(proxy.count(operation)).toBe(3);
    });

    it("gives up after its patience, and says what is known of the effect", async () => {
      const { proxy, store, key } = await open(IMPATIENT);
      proxy.always("put", FAILED);
      const failed = await expectReason(store.put(key, Buffer.from("x"), {}, call), "OBJECT_STORE_UNAVAILABLE");
      expect(failed).toMatchObject({ admitted: "unknown", metadata: { code: "InternalError" } });
      expect(proxy.count("put")).toBeGreaterThan(2);
      proxy.always("put", SLOW_DOWN);
      const throttled = await expectReason(store.put(key, Buffer.from("x"), {}, call), "OBJECT_STORE_UNAVAILABLE");
      expect(throttled.admitted).toBe("no");
    });

    it("ends with the signal between two tries", async () => {
      const { proxy, store, key } = await open({ limits: { pauseMs: () => 60_000, patienceMs: 600_000 } });
      const stop = new AbortController();
      proxy.always("get", SLOW_DOWN);
      const end = expect(store.get(key, {}, { signal: stop.signal })).rejects.toThrow("enough");
      while (proxy.count("get") === 0) await new Promise((resolve) => setImmediate(resolve));
      stop.abort(new Error("enough"));
      await end;
    });

    it("ends a try that is not answered, and tries again", async () => {
      const { proxy, store, key } = await open({ limits: { requestTimeoutMs: 300 } });
      proxy.next("put", { kind: "silent" });
      await store.put(key, Buffer.from("x"), {}, call);
      expect(proxy.count("put")).toBe(2);
      proxy.always("get", { kind: "silent" });
      const impatient = openTestStore(
        { ...server, url: proxy.url },
        { limits: { requestTimeoutMs: 300, patienceMs: 1 } },
      );
      opened.push(impatient);
      await expectReason(impatient.get(key, {}, call), "OBJECT_STORE_UNAVAILABLE");
    });

    it("does not wait for a server that is not there", async () => {
      const { proxy, key } = await open();
      const { url } = proxy;
      await proxy[Symbol.asyncDispose]();
      const store = openTestStore({ ...server, url }, IMPATIENT);
      opened.push(store);
      await expectReason(store.put(key, Buffer.from("x"), {}, call), "OBJECT_STORE_UNAVAILABLE");
    });
  });

  describe("the S3 adapter where an answer is lost", () => {
    it("finds out that a conditional put took effect, for both conditions", async () => {
      const { proxy, store, key } = await open();
      proxy.next("put", { kind: "lost" });
      const first = await store.put(key, Buffer.from("1"), { condition: { kind: "absent" } }, call);
      proxy.next("put", { kind: "lost" });
      const matches = { kind: "matches", etag: first.etag } as const;
      const second = await store.put(key, Buffer.from("2"), { condition: matches }, call);
      expect(await store.stat(key, call)).toMatchObject({ etag: second.etag });
      expect(await readText(store, key)).toBe("2");
    });

    it("does not take the equal content of another writer for its own", async () => {
      const { proxy, store, key } = await open();
      await store.put(key, Buffer.from("equal"), {}, call);
      proxy.next("put", { kind: "cut_request", bytes: 1 });
      const put = store.put(key, Buffer.from("equal"), { condition: { kind: "absent" } }, call);
      expect(await expectReason(put, "OBJECT_CHANGED")).toMatchObject({ admitted: "unknown" });
    });

    it("fails with an unknown outcome if it cannot look either", async () => {
      const { proxy, store, key } = await open(IMPATIENT);
      proxy.next("put", { kind: "lost" });
      proxy.always("head", FAILED);
      const put = store.put(key, Buffer.from("x"), { condition: { kind: "absent" } }, call);
      expect(await expectReason(put, "OBJECT_CHANGED")).toMatchObject({ admitted: "unknown" });
    });

    it("finds out that an object of parts was finished", async () => {
      const { proxy, store, key } = await open();
      proxy.next("complete", { kind: "lost" });
      const noise = new Noise(LARGE_BYTES);
      const { etag } = await store.putStream(key, noise, call);
      expect(await store.stat(key, call)).toMatchObject({ etag, bytes: LARGE_BYTES });
      expect(digestOf(await read(store, key))).toBe(noise.digest);
      expect(await listUploads(server)).toEqual([]);
    });
  });

  describe("the S3 adapter on a bad connection", () => {
    it("puts again what was cut off or spoiled on the way", async () => {
      const { proxy, store, key } = await open();
      const content = randomBytes(2 * MIB);
      proxy.next("put", { kind: "cut_request", bytes: 100_000 }, { kind: "wrong_request", bytes: 5000 });
      await store.put(key, content, {}, call);
      expect(proxy.count("put")).toBe(3);
      expect((await read(store, key)).equals(content)).toBe(true);
    });

    it("sends parts again that were cut off or spoiled, and not the others", async () => {
      const { proxy, store, key } = await open();
      proxy.next("part", { kind: "cut_request", bytes: MIB }, { kind: "wrong_request", bytes: 7 }, { kind: "lost" });
      const noise = new Noise(LARGE_BYTES);
      await store.putStream(key, noise, call);
      expect(digestOf(await read(store, key))).toBe(noise.digest);
      expect(proxy.count("part")).toBe(3 + 3);
    });

    it("leaves nothing if a part cannot be put, and ends the body", async () => {
      const { proxy, store, key } = await open(IMPATIENT);
      proxy.next("part", "none");
      proxy.always("part", { kind: "cut_request", bytes: 1 });
      const noise = new Noise(200 * MIB);
      await expectReason(store.putStream(key, noise, call), "OBJECT_STORE_UNAVAILABLE");
      expect(noise.ended).toBe(true);
      expect(noise.given).toBeLessThan(100 * MIB);
      expect(await store.stat(key, call)).toBeUndefined();
      expect(await listUploads(server)).toEqual([]);
    });

    it("fails a body that is cut off or that stands still", async () => {
      const { proxy, store, key } = await open({ limits: { stallMs: 200 } });
      await store.put(key, randomBytes(2 * MIB), {}, call);
      for (const kind of ["cut_answer", "stall"] as const) {
        proxy.next("get", { kind, bytes: 100_000 });
        await expectReason(read(store, key), "OBJECT_STORE_UNAVAILABLE");
      }
      expect(await read(store, key)).toHaveLength(2 * MIB);
    });

    it("waits for a reader that takes its time", async () => {
      const { store, key } = await open({ limits: { stallMs: 20 } });
      await store.put(key, randomBytes(8 * MIB), {}, call);
      const { body } = await store.get(key, {}, call);
      let bytes = 0;
      for await (const chunk of body) {
        if (bytes === 0) await new Promise((resolve) => setTimeout(resolve, 200));
        bytes += (chunk as Buffer).byteLength;
      }
      expect(bytes).toBe(8 * MIB);
    });

    it("finds damage in a whole object, of one part and of many", async () => {
      const { proxy, store, key } = await open();
      await store.put(key, randomBytes(MIB), {}, call);
      await store.putStream(`${key}-large`, new Noise(LARGE_BYTES), call);
      for (const [one, bytes] of [
        [key, MIB],
        [`${key}-large`, LARGE_BYTES],
      ] as const) {
        proxy.next("get", { kind: "wrong_answer", bytes: bytes - 1 });
        await expectReason(read(store, one), "OBJECT_DAMAGED");
        expect(await read(store, one)).toHaveLength(bytes);
      }
    });
  });

  describe("the S3 adapter on a server that refuses", () => {
    it("names a store without room, and leaves no parts there", async () => {
      const { proxy, store, key } = await open();
      for (const [status, code] of [
        [507, "XMinioStorageFull"],
        [507, "Unheard"],
        [403, "QuotaExceeded"],
      ] as const) {
        proxy.next("put", { kind: "answer", status, code });
        await expectReason(store.put(key, Buffer.from("x"), {}, call), "OBJECT_STORE_FULL");
        proxy.next("part", "none", { kind: "answer", status, code });
        await expectReason(store.putStream(key, new Noise(LARGE_BYTES), call), "OBJECT_STORE_FULL");
      }
      expect(proxy.count("put")).toBe(3);
      expect(await listUploads(server)).toEqual([]);
    });

    it("names wrong credentials, a missing bucket and a refusal, at once and without the secret", async () => {
      const { proxy, key } = await open();
      const lines: string[] = [];
      const logger = createLog({ name: "test", level: "trace", to: { write: (line) => void lines.push(line) } });
      const secret = "a-secret-that-is-wrong";
      const credentials = { ...server.credentials, secretAccessKey: new Secret(secret) };
      const at = { ...server, url: proxy.url };
      const failures: SandboxError[] = [];
      for (const store of [
        openTestStore(at, { credentials, logger }),
        openTestStore({ ...at, bucket: "there-is-none" }, { logger }),
      ]) {
        opened.push(store);
        failures.push(await expectReason(store.put(key, Buffer.from("x"), {}, call), "OBJECT_STORE_DENIED"));
        failures.push(await expectReason(store.check(call), "OBJECT_STORE_DENIED"));
        await expectReason(store.get(key, {}, call), "OBJECT_STORE_DENIED");
        await expectReason(store.list("", {}, call), "OBJECT_STORE_DENIED");
      }
      for (const { message, metadata } of failures)
        expect(`${message} ${JSON.stringify(metadata)}`).not.toContain(secret);
      expect(lines.join("\n")).not.toContain(secret);
    });
  });

  describe("the S3 adapter on a server whose lists are behind", () => {
    it("reads and looks at what no list shows yet", async () => {
      const { proxy, store, key } = await open();
      expect((await store.list(`${key}/`, {}, call)).objects).toEqual([]);
      await store.put(`${key}/a`, Buffer.from("x"), {}, call);
      proxy.next("list", { kind: "stale" });
      expect((await store.list(`${key}/`, {}, call)).objects).toEqual([]);
      expect(await store.stat(`${key}/a`, call)).toMatchObject({ bytes: 1 });
      expect(await readText(store, `${key}/a`)).toBe("x");
      expect((await store.list(`${key}/`, {}, call)).objects).toHaveLength(1);
    });
  });
}

/** On a server that looks at no signature, so that requests may be changed on their way. */
function unfitServers(server: S3Server): void {
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
  });

  describe("the check of the S3 adapter", () => {
    it.each(["if-none-match", "if-match"])("refuses a server that takes no notice of %s", async (field) => {
      await using proxy = await startFaultProxy(server.url);
      await using store = openTestStore({ ...server, url: proxy.url });
      await store.check(call);
      proxy.dropped.add(field);
      const refused = await expectReason(store.check(call), "OBJECT_STORE_DENIED");
      expect(refused.message.toLowerCase()).toContain(field);
    });
  });
}

const digestOf = (content: Buffer): string => createHash("sha256").update(content).digest("hex");
