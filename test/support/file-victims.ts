import { randomUUID } from "node:crypto";
import { fromConnectError } from "@turnbox/rpc/wire";
import { archiveOf } from "./archive-of.ts";
import { Refusal, type TestHost } from "./host.ts";
import { bytesOf, fileClient, uploadOf } from "./file-client.ts";

/** What an operation came to: everything that it told its caller, and whether it did what it was asked. */
export interface Outcome {
  readonly isDone: boolean;
  readonly text: string;
}

/** Does something at a path inside. Never throws where the host refuses. */
export type Victim = (path: string) => Promise<Outcome>;
export type Victims = Readonly<Record<string, Victim>>;

/** Everything on the host that opens a session's files, by what it does to a path. */
export interface FileVictims {
  readonly fileReads: Victims;
  readonly directoryReads: Victims;
  readonly fileWrites: Victims;
  /** Make or remove something in a directory. */
  readonly directoryWrites: Victims;
}

export const WRITTEN = "written by the host";

export function createVictims(host: TestHost, sessionId: string): FileVictims {
  const files = fileClient(host);
  let made = 0;

  const tool =
    (toolName: string, paramsOf: (path: string) => Record<string, unknown>): Victim =>
    async (path) => {
      const call = { sessionId, toolCallId: randomUUID(), toolName, params: paramsOf(path) };
      return await outcomeOf(async () => {
        const { isError, content } = await host.call("ToolService/ExecuteTool", call);
        return { isDone: isError !== true, text: String(content) };
      });
    };
  const rpc =
    (work: (path: string) => Promise<string>): Victim =>
    (path) =>
      outcomeOf(async () => ({ isDone: true, text: await work(path) }));

  const write = async (path: string): Promise<string> =>
    JSON.stringify((await files.writeFile(uploadOf({ sessionId, path }, Buffer.from(WRITTEN)))).entry?.path);
  const moveTo = async (path: string): Promise<string> => {
    made += 1;
    const source = `/workspace/.moved-${made}`;
    await write(source);
    return JSON.stringify(
      (await files.move({ sessionId, source, destination: path, overwrite: true })).entry?.linkTarget,
    );
  };
  const remove = async (path: string): Promise<string> => {
    await files.remove({ sessionId, path, recursive: true });
    return "removed";
  };
  const download = async (path: string): Promise<string> =>
    (await bytesOf(files.downloadArchive({ sessionId, path }))).toString("latin1");

  return {
    fileReads: {
      Stat: rpc(async (path) => shown(await files.stat({ sessionId, path }))),
      ReadFile: rpc(async (path) => (await bytesOf(files.readFile({ sessionId, path }))).toString("latin1")),
      DownloadArchive: rpc(download),
      read_file: tool("read_file", (path) => ({ path })),
      grep: tool("grep", (path) => ({ pattern: ".", path })),
    },
    directoryReads: {
      ListDirectory: rpc(async (path) => shown(await files.listDirectory({ sessionId, path }))),
      DownloadArchive: rpc(download),
      list_dir: tool("list_dir", (path) => ({ path, depth: 3 })),
      glob: tool("glob", (path) => ({ pattern: "**/*", path })),
      grep: tool("grep", (path) => ({ pattern: ".", path })),
    },
    fileWrites: {
      WriteFile: rpc(write),
      "Move to": rpc(moveTo),
      write_file: tool("write_file", (path) => ({ path, content: WRITTEN })),
      edit_file: tool("edit_file", (path) => ({ path, old_string: "text", new_string: WRITTEN })),
      Remove: rpc(remove),
    },
    directoryWrites: {
      WriteFile: rpc((path) => write(`${path}/by-WriteFile`)),
      MakeDirectory: rpc(async (path) =>
        shown(await files.makeDirectory({ sessionId, path: `${path}/by-Make/Directory`, parents: true })),
      ),
      "Move to": rpc((path) => moveTo(`${path}/by-Move`)),
      UploadArchive: rpc(async (path) =>
        shown(await files.uploadArchive(uploadOf({ sessionId, path }, archiveOf({ path: "by-Archive", text: "x" })))),
      ),
      write_file: tool("write_file", (path) => ({
        path: `${path}/by/write_file`,
        content: WRITTEN,
        create_dirs: true,
      })),
      Remove: rpc((path) => remove(`${path}/inner`)),
    },
  };
}

async function outcomeOf(work: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await work();
  } catch (thrown) {
    const reason = thrown instanceof Refusal ? thrown.reason : fromConnectError(thrown).reason;
    return { isDone: false, text: `${reason}: ${thrown instanceof Error ? thrown.message : ""}` };
  }
}

function shown(answer: unknown): string {
  return JSON.stringify(answer, (_key, value: unknown) => (typeof value === "bigint" ? String(value) : value));
}
