import { type Call, type CommandRunner, SandboxError } from "@turnbox/core";

/** The machine's programs for networks. If one fails, `RUNTIME_UNAVAILABLE` is thrown, with the program's output as cause. */
export interface NetworkSystem {
  /** Lines for `ip`, in a namespace or in the machine's own. They stop at the first that fails. */
  ip(netns: string | null, lines: readonly string[], call: Call): Promise<void>;
  /** The output of `ip -j`. */
  ipJson(netns: string | null, args: readonly string[], call: Call): Promise<unknown>;
  /** A script for `nft`: all of it or nothing. */
  nft(netns: string | null, script: string, call: Call): Promise<void>;
  /** The output of `nft -j`; undefined if there is no such object. */
  nftJson(netns: string | null, args: readonly string[], call: Call): Promise<unknown>;
  /** Kernel settings of a namespace, as paths below /proc/sys/net. Those that the kernel does not have are left out. */
  tune(netns: string | null, settings: Readonly<Record<string, string>>, call: Call): Promise<void>;
  /** Runs a command that removes something. It may fail, as it does if the thing is gone. */
  remove(args: readonly string[], call: Call): Promise<void>;
}

const DEADLINE_MS = 10_000;

export function createNetworkSystem(runner: CommandRunner): NetworkSystem {
  const run = async (argv: readonly [string, ...string[]], stdin: string, { signal }: Call) => {
    const [command, ...args] = argv;
    return await runner.run({ command, args, stdin, deadlineMs: DEADLINE_MS }, { signal });
  };
  const must = async (argv: readonly [string, ...string[]], stdin: string, call: Call): Promise<string> => {
    const { exitCode, stdout, stderr } = await run(argv, stdin, call);
    if (exitCode === 0) return stdout;
    const cause = new Error(`${argv.join(" ")}: ${stderr.trim().slice(0, 2000)}`);
    throw new SandboxError("RUNTIME_UNAVAILABLE", "the network of a sandbox could not be set up", { cause });
  };
  const within = (netns: string | null): readonly string[] => (netns === null ? [] : ["-n", netns]);
  const inside = (netns: string | null, program: string): readonly [string, ...string[]] =>
    netns === null ? [program] : ["ip", "netns", "exec", netns, program];

  return {
    ip: async (netns, lines, call) => {
      await must(["ip", ...within(netns), "-batch", "-"], `${lines.join("\n")}\n`, call);
    },
    ipJson: async (netns, args, call) =>
      JSON.parse((await must(["ip", "-j", ...within(netns), ...args], "", call)) || "[]") as unknown,
    nft: async (netns, script, call) => {
      await must([...inside(netns, "nft"), "-f", "-"], script, call);
    },
    nftJson: async (netns, args, call) => {
      const { exitCode, stdout } = await run([...inside(netns, "nft"), "-j", ...args], "", call);
      return exitCode === 0 ? (JSON.parse(stdout) as unknown) : undefined;
    },
    tune: async (netns, settings, call) => {
      const lines = Object.entries(settings).map(([path, value]) => {
        const file = `/proc/sys/net/${path}`;
        return `if [ -e ${file} ]; then echo ${value} > ${file}; fi`;
      });
      await must([...inside(netns, "sh"), "-ec", lines.join("\n")], "", call);
    },
    remove: async ([command = "", ...args], call) => {
      await run([command, ...args], "", call);
    },
  };
}
