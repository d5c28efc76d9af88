import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** A program and its arguments. */
export interface Invocation {
  readonly command: string;
  readonly args: readonly string[];
}

interface Numbers {
  readonly auditArch: number;
  readonly prctl: number;
  readonly membarrier: number;
}

/** Of the kernel's tables; other processors are not masked. */
const NUMBERS: Readonly<Partial<Record<string, Numbers>>> = {
  x64: { auditArch: 0xc000003e, prctl: 157, membarrier: 324 },
  arm64: { auditArch: 0xc00000b7, prctl: 167, membarrier: 283 },
};

const ENOSYS = 38;

/** Part of every Debian. */
const PERL = "/usr/bin/perl";

/** Lies as far from the sources of this package as from what is built of them. */
const LAUNCHER = fileURLToPath(new URL("../../../programs/without-membarrier.pl", import.meta.url));

/**
 * The command, so that it and all that it starts are told by the kernel that there is no membarrier(2). Programs written
 * in Go with gVisor's packages wait about 10 ms for that call at each start, which is most of what a start takes. Returns the
 * same command if the machine has no perl, or its processor is not known here.
 */
export function withoutMembarrier(command: Invocation, perlPath = PERL, arch: string = process.arch): Invocation {
  const numbers = NUMBERS[arch];
  if (numbers === undefined || !existsSync(perlPath)) return command;
  const filter = createFilter(numbers).toString("hex");
  const launcher = [LAUNCHER, String(numbers.prctl), filter];
  return { command: perlPath, args: [...launcher, command.command, ...command.args] };
}

/** Classic BPF over `struct seccomp_data`: another architecture's calls pass, membarrier fails with ENOSYS, the rest passes. */
function createFilter({ auditArch, membarrier }: Numbers): Buffer {
  const [load, jumpIfEqual, answer] = [0x20, 0x15, 0x06];
  const [offsetOfNumber, offsetOfArch] = [0, 4];
  const [allow, fail] = [0x7fff0000, 0x00050000];
  const steps = [
    { code: load, no: 0, value: offsetOfArch },
    { code: jumpIfEqual, no: 3, value: auditArch },
    { code: load, no: 0, value: offsetOfNumber },
    { code: jumpIfEqual, no: 1, value: membarrier },
    { code: answer, no: 0, value: fail + ENOSYS },
    { code: answer, no: 0, value: allow },
  ];
  const program = Buffer.alloc(steps.length * 8);
  steps.forEach(({ code, no, value }, index) => {
    program.writeUInt16LE(code, index * 8);
    program.writeUInt8(no, index * 8 + 3);
    program.writeUInt32LE(value, index * 8 + 4);
  });
  return program;
}
