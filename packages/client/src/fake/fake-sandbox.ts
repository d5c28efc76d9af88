import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { SandboxError } from "@turnbox/core";
import { toConnectError } from "@turnbox/rpc/wire";
import { FileEventKind, FileService, FileType } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import {
  type LaunchProcessRequest,
  ProcessExitReason,
  ProcessSchema,
  ProcessService,
  ProcessState,
  type TerminalSize,
} from "@turnbox/protocol/turnbox/host/v1/process_pb";

const PROCESS_ID = "1abc";

/** The files and the one process of a sandbox in memory. */
export interface FakeSandbox {
  files: Map<string, { readonly content: Buffer; readonly mode: number }>;
  directories: Set<string>;
  /** What was unpacked, by directory. */
  archives: Map<string, Buffer>;
  launched: LaunchProcessRequest[];
  /** What the process writes, echo of its input apart. */
  output: string;
  typed: string;
  inputEnd: "open" | "closed";
  sizes: TerminalSize[];
  signals: number[];
  /** Offsets that were read from. */
  reads: number[];
  /** Connections that break after this many bytes, one after the other. */
  breakAfterBytes: number[];
  /** Input calls whose answer gets lost. */
  lostAnswers: number;
  /** Bytes of output that are gone. */
  goneBytes: number;
  exitCode: number;
  state: ProcessState;
  end(): void;
  readonly ended: Promise<void>;
}

export function newSandbox(): FakeSandbox {
  const { promise, resolve } = Promise.withResolvers<void>();
  const sandbox: FakeSandbox = {
    files: new Map(),
    directories: new Set(["/workspace"]),
    archives: new Map(),
    launched: [],
    output: "",
    typed: "",
    inputEnd: "open",
    sizes: [],
    signals: [],
    reads: [],
    breakAfterBytes: [],
    lostAnswers: 0,
    goneBytes: 0,
    exitCode: 0,
    state: ProcessState.RUNNING,
    end: () => {
      sandbox.state = ProcessState.EXITED;
      resolve();
    },
    ended: promise,
  };
  return sandbox;
}

const broken = () => new ConnectError("the connection broke", Code.Unavailable);
const missing = (path: string) => toConnectError(new SandboxError("FILE_NOT_FOUND", `no ${path}`), "r1");

export function routeSandbox(router: ConnectRouter, sandbox: FakeSandbox): void {
  const describe = (state: ProcessState) => {
    const launch = sandbox.launched[0];
    return create(ProcessSchema, {
      processId: PROCESS_ID,
      binary: launch?.binary ?? "server",
      args: launch?.args ?? [],
      state,
      terminal: launch?.terminal !== undefined,
      outputBytes: BigInt(sandbox.output.length),
      inputBytes: BigInt(sandbox.typed.length),
      ...(state === ProcessState.EXITED ? { exitCode: sandbox.exitCode, exitReason: ProcessExitReason.EXITED } : {}),
    });
  };
  router.service(ProcessService, {
    launchProcess: (request) => {
      sandbox.launched.push(request);
      return { process: describe(ProcessState.RUNNING) };
    },
    getProcessStatus: () => ({ process: describe(sandbox.state) }),
    listProcesses: () => ({ processes: [describe(ProcessState.RUNNING)] }),
    killProcess: ({ signal }) => {
      sandbox.signals.push(signal);
      sandbox.end();
      return { process: describe(ProcessState.RUNNING) };
    },
    async *readOutput({ offset, follow }) {
      sandbox.reads.push(Number(offset));
      const start = Math.max(Number(offset), sandbox.goneBytes);
      const breakAfter = sandbox.breakAfterBytes.shift();
      const text = sandbox.output.slice(start, breakAfter === undefined ? undefined : start + breakAfter);
      const droppedBytes = BigInt(start) - offset;
      if (text !== "" || droppedBytes > 0n) yield { data: Buffer.from(text), offset: BigInt(start), droppedBytes };
      if (breakAfter !== undefined) throw broken();
      if (!follow) return;
      await sandbox.ended;
      const at = start + text.length;
      const rest = Buffer.from(sandbox.output.slice(at));
      yield { data: rest, offset: BigInt(at), exited: describe(ProcessState.EXITED) };
    },
    writeInput: ({ offset, data }) => {
      sandbox.typed += Buffer.from(data)
        .toString()
        .slice(sandbox.typed.length - Number(offset));
      if (sandbox.typed.endsWith("\u0004") || sandbox.typed.endsWith("exit\r")) sandbox.end();
      if (sandbox.lostAnswers > 0) {
        sandbox.lostAnswers -= 1;
        throw broken();
      }
      return { acceptedBytes: BigInt(sandbox.typed.length) };
    },
    closeInput: () => {
      sandbox.inputEnd = "closed";
      sandbox.end();
      return {};
    },
    resizeTerminal: ({ size }) => {
      if (size !== undefined) sandbox.sizes.push(size);
      return {};
    },
  });
  router.service(FileService, {
    stat: ({ path }) => {
      if (sandbox.directories.has(path)) return { entry: { path, type: FileType.DIRECTORY } };
      const file = sandbox.files.get(path);
      if (file === undefined) throw missing(path);
      return { entry: { path, type: FileType.FILE, sizeBytes: BigInt(file.content.length), mode: file.mode } };
    },
    async *readFile({ path, offset, limitBytes }) {
      const file = sandbox.files.get(path);
      if (file === undefined) throw missing(path);
      const start = Number(offset);
      const wanted = file.content.subarray(start, limitBytes === 0n ? undefined : start + Number(limitBytes));
      const half = Math.floor(wanted.length / 2);
      yield {
        entry: { path, type: FileType.FILE, sizeBytes: BigInt(file.content.length), mode: file.mode },
        data: wanted.subarray(0, half),
      };
      if (sandbox.breakAfterBytes.shift() !== undefined) throw broken();
      yield await Promise.resolve({ data: wanted.subarray(half) });
    },
    async *watchDirectory({ path }) {
      yield { kind: FileEventKind.STARTED, path };
      if (sandbox.breakAfterBytes.shift() !== undefined) throw broken();
      yield { kind: FileEventKind.CREATED, path: `${path}/new` };
      await sandbox.ended;
    },
    writeFile: async (parts) => {
      const header = { path: "", mode: 0 };
      const pieces: Uint8Array[] = [];
      for await (const { part } of parts) {
        if (part.case === "header") Object.assign(header, { path: part.value.path, mode: part.value.mode });
        else if (part.case === "data") pieces.push(part.value);
      }
      const content = Buffer.concat(pieces);
      sandbox.files.set(header.path, { content, mode: header.mode });
      return { entry: { path: header.path, mode: header.mode, sizeBytes: BigInt(content.length) } };
    },
    uploadArchive: async (parts) => {
      let path = "";
      const pieces: Uint8Array[] = [];
      for await (const { part } of parts) {
        if (part.case === "header") path = part.value.path;
        else if (part.case === "data") pieces.push(part.value);
      }
      sandbox.archives.set(path, Buffer.concat(pieces));
      sandbox.directories.add(path);
      return { entries: 1 };
    },
    async *downloadArchive({ path }) {
      yield await Promise.resolve({ data: sandbox.archives.get(path) ?? Buffer.alloc(0) });
    },
  });
}
