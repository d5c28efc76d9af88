import { type CommandRunner, SandboxError } from "@turnbox/core";

interface Call {
  readonly signal: AbortSignal;
}

/** The machine's programs for networks. Each throws `RUNTIME_UNAVAILABLE` with what the program said where it fails. */
export interface NetworkSystem {
  /** Lines for `ip`, in a namespace or in the machine's own. They stop at the first that fails. */
  ip(netns: string | null, lines: readonly string[], call: Call): Promise<void>;
  /** What `ip -j` says. */
  ipJson(netns: string | null, args: readonly string[], call: Call): Promise<unknown>;
  /** A script for `nft`: all of it or nothing. */
  nft(netns: string | null, script: string, call: Call): Promise<void>;
  /** What `nft -j` says; undefined where there is no such thing. */
  nftJson(netns: string | null, args: readonly string[], call: Call): Promise<unknown>;
  /** Kernel settings of a namespace, as paths below /proc/sys/net. One that the kernel does not have is passed over. */
  tune(netns: string | null, settings: Readonly<Record<string, string>>, call: Call): Promise<void>;
  /** Takes something away and does not mind where it is gone. */
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
