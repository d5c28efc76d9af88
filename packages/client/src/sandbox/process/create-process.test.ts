import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { openRoom } from "../../fake/room.suite.ts";

describe("the output of a process", () => {
  it("goes on at its offset after connections that broke, as lines without their ends", async () => {
    using room = await openRoom();
    room.inside.output = "one\r\ntwö\nthree";
    room.inside.breakAfterBytes = [2, 5];
    const server = await room.sandbox.processes.launch("server", { args: ["-v"], exposePort: 80 });
    room.inside.end();
    const lines: string[] = [];
    for await (const line of server.lines()) lines.push(line);
    expect(lines[0]).toBe("one");
    expect(lines.at(-1)).toBe("three");
    expect(room.inside.reads.slice(0, 2)).toEqual([0, 2]);
    expect(room.inside.launched[0]).toMatchObject({ binary: "server", args: ["-v"], exposePort: 80 });
  });

  it("tells of bytes that are gone", async () => {
    using room = await openRoom();
    room.inside.output = "0123456789";
    room.inside.goneBytes = 4;
    const process = await room.sandbox.processes.get("1abc");
    const pieces: object[] = [];
    for await (const { data, ...place } of process.output({ follow: false }))
      pieces.push({ ...place, text: Buffer.from(data).toString() });
    expect(pieces).toEqual([{ offset: 4, droppedBytes: 4, text: "456789" }]);
  });

  it("ends with the process, whose end `wait` tells", async () => {
    using room = await openRoom();
    room.inside.exitCode = 3;
    const process = await room.sandbox.processes.launch("job");
    const waiting = process.wait();
    room.inside.end();
    expect(await waiting).toMatchObject({ state: "exited", exitCode: 3, exitReason: "exited" });
  });
});

describe("the input of a process", () => {
  it("arrives once and in order, also where answers get lost", async () => {
    using room = await openRoom();
    room.inside.lostAnswers = 1;
    const process = await room.sandbox.processes.launch("cat");
    await Promise.all([process.write("one "), process.write(Buffer.from("two ")), process.write("three")]);
    expect(room.inside.typed).toBe("one two three");
    await process.closeInput();
    expect(room.inside.inputEnd).toBe("closed");
  });

  it("asks where to go on after a write that failed", async () => {
    using room = await openRoom();
    const process = await room.sandbox.processes.launch("cat");
    room.harness.faults.set("WriteInput", [new SandboxError("INVALID_STATE", "closed")]);
    await expect(process.write("lost")).rejects.toMatchObject({ reason: "INVALID_STATE" });
    await process.write("kept");
    expect(room.inside.typed).toBe("kept");
    // The first write knows that nobody has written before.
    expect(room.harness.sent("GetProcessStatus")).toHaveLength(1);
  });
});

describe("a signal", () => {
  it("is sent again only where it certainly did not arrive", async () => {
    using room = await openRoom();
    const process = await room.sandbox.processes.launch("server");
    room.harness.faults.set("KillProcess", ["refused"]);
    await process.kill("SIGUSR1");
    expect(room.inside.signals).toEqual([10]);
    room.harness.faults.set("KillProcess", ["lost"]);
    await expect(process.kill(2)).rejects.toMatchObject({ reason: "HOST_UNREACHABLE", admitted: "unknown" });
    expect(room.inside.signals).toEqual([10, 2]);
  });

  it("must be one", async () => {
    using room = await openRoom();
    const process = await room.sandbox.processes.launch("server");
    await expect(process.kill(65)).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
  });
});

describe("a shell", () => {
  it("is whichever there is, in a terminal that can change its size", async () => {
    using room = await openRoom();
    const shell = await room.sandbox.shell({ size: { columns: 100, rows: 30 } });
    expect(room.inside.launched[0]).toMatchObject({
      binary: "sh",
      env: { TERM: "xterm" },
      terminal: { columns: 100, rows: 30 },
    });
    await shell.resize({ columns: 120, rows: 40 });
    expect(room.inside.sizes).toMatchObject([{ columns: 120, rows: 40 }]);
  });
});
