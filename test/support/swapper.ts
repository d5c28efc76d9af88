import { spawn } from "node:child_process";
import { once } from "node:events";

/** How two names are swapped: by one system call, so that both are always there, or by renames one after another. */
export type Swapping = "exchange" | "renames";

/** Swaps two names in a directory as fast as it can. It ends with its owner. */
export interface Swapper {
  /** Ends it; answers with how often it swapped. */
  stop(): Promise<number>;
}

/** renameat2, which node does not offer, by the system's perl. */
const SYSTEM_CALLS: Readonly<Record<string, number>> = { x64: 316, arm64: 276 };

const PROGRAM = `
my ($how, $number, $directory, $d, $link) = @ARGV;
chdir $directory or die "chdir: $!";
my $swaps = 0;
$| = 1;
$SIG{TERM} = sub { print "$swaps\\n"; exit 0 };
my $exchange = sub { syscall($number + 0, -100, $d, -100, $link, 2) };
if ($how eq "exchange") { $exchange->() == 0 or die "renameat2: $!" }
print "ready\\n";
while (getppid() != 1) {
  for (1 .. 1000) {
    if ($how eq "exchange") { $exchange->() == 0 and $swaps++ }
    else { rename($d, "real") and rename($link, $d) and rename($d, $link) and rename("real", $d) and $swaps++ }
  }
}`;

export async function startSwapper(
  directory: string,
  how: Swapping,
  [name, link]: readonly [string, string] = ["d", "link"],
): Promise<Swapper> {
  const number = SYSTEM_CALLS[process.arch];
  if (number === undefined) throw new Error(`the number of renameat2 on ${process.arch} is not known`);
  const args = ["-e", PROGRAM, how, String(number), directory, name, link];
  const child = spawn("perl", args, { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  let complaint = "";
  child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (complaint += chunk.toString()));
  const closed = once(child, "close");
  await Promise.race([once(child.stdout, "data"), closed]);
  if (!said.startsWith("ready")) throw new Error(`the swapper does not swap: ${complaint}`);
  return {
    stop: async () => {
      child.kill("SIGTERM");
      await closed;
      return Number(said.split("\n")[1]);
    },
  };
}
