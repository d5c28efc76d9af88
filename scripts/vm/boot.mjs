import { existsSync, readFileSync } from "node:fs";
import path from "node:path";

const RUN_TIMEOUT_S = 4 * 60 * 60;
const MEMORY_MIB = 4096;

/**
 * The machine. Its CPU is in software: where /dev/kvm is there it may still not work. One instruction takes it one
 * nanosecond of its own time (`shift=0`), however long it takes ours, so that deadlines inside hold on a slow and on a
 * busy machine; where it has nothing to do, its time is real time (`sleep=on`).
 */
const MACHINE = {
  accel: "tcg,thread=single,tb-size=512",
  icount: "shift=0,sleep=on",
  M: "q35",
  cpu: "Nehalem",
  smp: "1",
  m: String(MEMORY_MIB),
  display: "none",
  monitor: "none",
  nic: "none",
};

/** Two disks, one serial line, no network. Nothing that the guest writes is kept. */
function qemuCommand({ kernel, initramfs, rootImage, disk, log }) {
  const drive = (file) => ["-drive", `file=${file},format=raw,if=virtio,cache=unsafe,snapshot=on`];
  return [
    ...["timeout", "--kill-after=10", String(RUN_TIMEOUT_S), "qemu-system-x86_64", "-no-reboot"],
    ...Object.entries(MACHINE).flatMap(([name, value]) => [`-${name}`, value]),
    ...["-chardev", `stdio,id=line,signal=off,logfile=${log}`, "-serial", "chardev:line"],
    ...["-kernel", kernel, "-initrd", initramfs],
    ...["-append", "console=ttyS0 quiet panic=-1 mitigations=off nokaslr"],
    ...drive(rootImage),
    ...drive(disk),
  ];
}

/**
 * What the guest has told. qemu's own exit code says nothing about the tests, and a tally says nothing about a guest that
 * broke down after it: only `VM-EXIT 0` is a success. Pure.
 */
export function readVerdict(text) {
  const lines = text.split(/\r?\n/);
  const code = lines.map((line) => /^VM-EXIT (\d+)$/.exec(line)?.[1]).findLast((found) => found !== undefined);
  const tally = lines.map((line) => /^(\d+) passed, (\d+) failed.*$/.exec(line)).findLast((found) => found !== null);
  if (code === "0" && tally?.[2] === "0") return { exitCode: 0, line: tally[0] };
  const failed = Math.max(1, Number(tally?.[2] ?? 0));
  const problem = code === undefined ? "the guest ended without VM-EXIT" : `the guest ended with VM-EXIT ${code}`;
  return { exitCode: 1, problem, line: `${tally?.[1] ?? 0} passed, ${failed} failed` };
}

/** Boots the guest and waits for its end. What it prints is passed on. */
export async function bootGuest({ images, project, run }) {
  const log = path.join(project.folder, "console.log");
  const argv = qemuCommand({ ...images, disk: project.disk, log });
  await run(argv, { stdio: ["ignore", 1, 1], env: { TMPDIR: project.folder } });
  return readVerdict(existsSync(log) ? readFileSync(log, "utf8") : "");
}
