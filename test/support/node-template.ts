import { copyFile, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { build } from "esbuild";
import { REPO, run } from "./process.ts";
import type { TestServer } from "./server.ts";

const APPLETS = ["sh", "cat", "ls", "sleep"];
const SCRIPTED = join(REPO, "packages/agents/src/provider/acp/scripted-agent-main.suite.ts");
/** The example agent that is published with an older release of the protocol's SDK. */
const EXAMPLE = join(REPO, "packages/agents/node_modules/acp-example-agent/dist/examples/agent.js");

/** The agents, in a sandbox of the template. */
export const AGENTS = { scripted: "/opt/agent/scripted.mjs", example: "/opt/agent/example.mjs" } as const;

/** Gives a server the template `node`: busybox, bash, this machine's Node and the agents, each as one file. */
export async function installNode(server: TestServer): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "turnbox-node-template-"));
  try {
    const root = join(directory, "root");
    await Promise.all([
      fillRoot(root),
      bundle(SCRIPTED, join(root, AGENTS.scripted)),
      bundle(EXAMPLE, join(root, AGENTS.example)),
    ]);
    const archive = join(directory, "node.tar");
    await succeed("tar", ["-C", root, "-cf", archive, "."]);
    await server.json("template", "import", "node", archive);
  } finally {
    await rm(directory, { recursive: true });
  }
}

async function fillRoot(root: string): Promise<void> {
  const node = process.execPath;
  const libraries = (await succeed("ldd", [node])).match(/\/\S+(?= \(0x)/g) ?? [];
  const place = async (from: string, to: string): Promise<void> => {
    await mkdir(dirname(join(root, to)), { recursive: true });
    await copyFile(from, join(root, to));
  };
  await place("/bin/busybox", "bin/busybox");
  await place("/bin/bash-static", "bin/bash");
  await place(node, `usr/bin/${basename(node)}`);
  for (const library of libraries) await place(library, library);
  for (const applet of APPLETS) await symlink("busybox", join(root, "bin", applet));
}

async function bundle(entry: string, outfile: string): Promise<void> {
  await build({ entryPoints: [entry], outfile, bundle: true, platform: "node", format: "esm", logLevel: "silent" });
}

async function succeed(command: string, args: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await run(command, args);
  if (exitCode !== 0) throw new Error(`${command}: ${stderr}`);
  return stdout;
}
