import type { ProcessOutput } from "./sandbox-processes.ts";

/** Text as lines, without their ends (LF or CRLF). The last one need not have an end. */
export async function* toLines(output: AsyncIterable<ProcessOutput>): AsyncIterable<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const { data } of output) {
    const lines = (rest + decoder.decode(data, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield withoutReturn(line);
  }
  rest += decoder.decode();
  if (rest !== "") yield withoutReturn(rest);
}

const withoutReturn = (line: string): string => (line.endsWith("\r") ? line.slice(0, -1) : line);
