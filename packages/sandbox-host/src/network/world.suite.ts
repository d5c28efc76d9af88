import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";

/** A namespace that stands for everything outside of the machine. It owns addresses and records connections to them. */
export interface World extends AsyncDisposable {
  readonly netns: string;
  /** Destinations, `address:port`, that were connected to since the last call. */
  arrived(): Promise<readonly string[]>;
}

const ip = (...args: readonly string[]): void => {
  execFileSync("ip", args);
};

const LISTENER = `
const net = require("node:net"), dgram = require("node:dgram");
let seen = [], waiting = 3;
const up = () => { waiting -= 1; if (waiting === 0) process.stdout.write("ready\\n"); };
const note = (text) => seen.push(text);
const server = (port) => net.createServer((s) => { note(s.localAddress.replace("::ffff:", "") + ":" + port); s.on("error", () => {}); s.on("data", (d) => s.write(d)); s.write("hello\\n"); }).listen(port, "0.0.0.0", up);
server(80); server(7700);
const udp = dgram.createSocket("udp4"); udp.on("message", () => note("udp")); udp.bind(53, "0.0.0.0", up);
process.stdin.on("data", () => { process.stdout.write(JSON.stringify(seen) + "\\n"); seen = []; });
process.stdin.on("end", () => process.exit(0));
`;

/** Makes a world with these addresses. All of them are routed to it, so nothing that is sent to them leaves the machine. */
export async function makeWorld(addresses: readonly string[]): Promise<World> {
  const key = randomBytes(3).toString("hex");
  const netns = `tst-${key}`;
  const link = `tst${key}`;
  ip("netns", "add", netns);
  ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", netns);
  ip("link", "set", "dev", link, "up");
  ip("-n", netns, "link", "set", "dev", "lo", "up");
  ip("-n", netns, "link", "set", "dev", "eth0", "up");
  const gateway = `203.0.113.${String(1 + (Number.parseInt(key.slice(0, 2), 16) % 120) * 2)}`;
  ip("addr", "add", `${gateway}/32`, "dev", link);
  ip("-n", netns, "route", "add", `${gateway}/32`, "dev", "eth0");
  ip("-n", netns, "route", "add", "default", "via", gateway, "dev", "eth0");
  for (const address of addresses) {
    ip("-n", netns, "addr", "add", `${address}/32`, "dev", "eth0");
    // A run that was killed may have left a route of its own.
    ip("route", "replace", `${address}/32`, "dev", link, "src", gateway);
  }
  const listener = startNode(netns, LISTENER);
  await nextLine(listener);
  return {
    netns,
    arrived: async () => {
      const line = nextLine(listener);
      listener.stdin?.write("?\n");
      return JSON.parse(await line) as readonly string[];
    },
    [Symbol.asyncDispose]: async () => {
      const ended = once(listener, "exit");
      listener.stdin?.end();
      await ended;
      ip("link", "del", link);
      ip("netns", "del", netns);
    },
  };
}

const CLIENT = `
const net = require("node:net");
const targets = JSON.parse(process.argv[1]);
Promise.all(targets.map((target) => new Promise((resolve) => {
  const cut = target.lastIndexOf(":");
  const socket = net.connect({ host: target.slice(0, cut), port: Number(target.slice(cut + 1)) });
  const end = (how) => { clearTimeout(timer); socket.destroy(); resolve([target, how]); };
  const timer = setTimeout(() => end("silence"), 1500);
  socket.once("data", () => end("connected"));
  socket.once("error", (error) => end(error.code));
}))).then((all) => console.log(JSON.stringify(Object.fromEntries(all))));
`;

/** Tries connections from a namespace. By target: `connected`, `silence`, or an error's code. */
export async function connectFrom(
  netns: string,
  targets: readonly string[],
): Promise<Readonly<Record<string, string>>> {
  return JSON.parse(await runNode(netns, CLIENT, [JSON.stringify(targets)])) as Record<string, string>;
}

const HOLDER = `
const net = require("node:net");
const [host, port] = process.argv[1].split(":");
const socket = net.connect({ host, port: Number(port) });
let answer = () => {};
const say = (text) => { const now = answer; answer = () => {}; now(text); };
socket.once("data", () => { process.stdout.write("open\\n"); socket.on("data", () => say("echo")); });
socket.on("error", (error) => say(error.code));
process.stdin.on("data", () => {
  const timer = setTimeout(() => say("silence"), 1500);
  answer = (text) => { clearTimeout(timer); process.stdout.write(text + "\\n"); };
  socket.write("x");
});
process.stdin.on("end", () => process.exit(0));
`;

/** A connection that stays open. */
export interface HeldConnection extends AsyncDisposable {
  /** Sends something: `echo` if it comes back, `silence`, or an error's code. */
  send(): Promise<string>;
}

export async function holdFrom(netns: string, target: string): Promise<HeldConnection> {
  const child = startNode(netns, HOLDER, [target]);
  await nextLine(child);
  return {
    send: async () => {
      const line = nextLine(child);
      child.stdin?.write("?\n");
      return await line;
    },
    [Symbol.asyncDispose]: async () => {
      const ended = once(child, "exit");
      child.stdin?.end();
      await ended;
    },
  };
}

const ASK = `
const { Resolver } = require("node:dns").promises;
const [server, names] = JSON.parse(process.argv[1]);
const resolver = new Resolver({ timeout: 1000, tries: 1 });
resolver.setServers([server]);
Promise.all(names.map((name) => (name.startsWith("TXT ") ? resolver.resolveTxt(name.slice(4)) : resolver.resolve4(name)).then((a) => [name, a.join(",")], (e) => [name, e.code])))
  .then((all) => console.log(JSON.stringify(Object.fromEntries(all))));
`;

/** Asks a resolver from a namespace: addresses, or an error's code, by name. */
export async function askFrom(
  netns: string,
  server: string,
  names: readonly string[],
): Promise<Readonly<Record<string, string>>> {
  return JSON.parse(await runNode(netns, ASK, [JSON.stringify([server, names])])) as Record<string, string>;
}

/** A program in a namespace; it ends when its input does. */
export function startNode(netns: string, script: string, args: readonly string[] = []): ChildProcess {
  return spawn("ip", ["netns", "exec", netns, process.execPath, "-e", script, ...args], {
    stdio: ["pipe", "pipe", "inherit"],
  });
}

async function runNode(netns: string, script: string, args: readonly string[]): Promise<string> {
  const child = startNode(netns, script, args);
  const line = await nextLine(child);
  child.stdin?.end();
  return line;
}

/** The next line of a program's output. */
export async function nextLine({ stdout }: ChildProcess): Promise<string> {
  return await new Promise((resolve, reject) => {
    let text = "";
    const settle = (): void => {
      stdout?.off("data", onData).off("end", onEnd);
    };
    const onData = (chunk: Buffer): void => {
      text += chunk.toString();
      if (!text.endsWith("\n")) return;
      settle();
      resolve(text.trim());
    };
    const onEnd = (): void => {
      settle();
      reject(new Error(`the program ended early: ${text}`));
    };
    stdout?.on("data", onData).on("end", onEnd);
  });
}
