/** A line of `/proc/<pid>/stat`, as far as it matters here. */
export interface ProcessStat {
  readonly pid: number;
  readonly state: string;
  readonly parentPid: number;
  /** Together with the pid, this names a process for ever; pids alone are used again. */
  readonly startTime: string;
}

/** The name in brackets may hold anything, also brackets and line breaks: the last bracket ends it. */
export function parseStat(line: string): ProcessStat | undefined {
  const [, pid, rest] = /^(\d+) \(.*\) (.*)$/s.exec(line.trimEnd()) ?? [];
  const fields = rest?.split(" ") ?? [];
  const [state, parentPid] = fields;
  const startTime = fields[19];
  if (pid === undefined || state === undefined || parentPid === undefined || startTime === undefined) return undefined;
  return { pid: Number(pid), state, parentPid: Number(parentPid), startTime };
}
