import { describe, expect, it } from "@jest/globals";
import { idOfStateFile, parseStateFile, stateFilePath } from "./state-file.ts";

/** As written by runsc 0.0~20240729.0, without the spec. */
const RECORDED = `{"id":"probe1","bundleDir":"bundle","createdAt":"2026-11-16T04:37:09.0209851Z","owner":"","consoleSocket":"",
"status":"running","goferPid":7816,"sandbox":{"id":"probe1","podName":"","namespace":"","pid":7820,"uid":0,"gid":0,
"cgroup":{"cgroupv1":{"name":"/turnbox/probe1","parents":null,"own":{"cpu":true,"memory":true}}},"originalOomScoreAdj":0,
"controlSocketPath":"/state/runsc-probe1.sock","mountHints":{"mounts":{}},"startTime":"2026-11-16T04:37:09.019700342Z"},
"compatCgroup":{"cgroupunknown":null},"saver":{"rootDir":"/state","id":{"sandboxId":"probe1","containerId":"probe1"}}}`;

describe("runsc's state file", () => {
  it("names the processes and the control socket", () => {
    expect(parseStateFile(RECORDED)).toEqual({
      id: "probe1",
      status: "running",
      sandboxPid: 7820,
      goferPid: 7816,
      controlSocketPath: "/state/runsc-probe1.sock",
    });
  });

  it("may lack a gofer and a socket", () => {
    expect(parseStateFile('{"id":"a","status":"creating","sandbox":{"pid":5,"controlSocketPath":""}}')).toEqual({
      id: "a",
      status: "creating",
      sandboxPid: 5,
      goferPid: 0,
      controlSocketPath: undefined,
    });
  });

  it.each(["", "{", "null", "[]", "7", '{"id":"a"}', RECORDED.slice(0, 300)])("is nothing where it is %j", (text) => {
    expect(parseStateFile(text)).toBeUndefined();
  });

  it("is named after its container", () => {
    expect(stateFilePath("/state", "abc")).toBe("/state/abc_sandbox:abc.state");
    expect(idOfStateFile("abc_sandbox:abc.state")).toBe("abc");
    expect(idOfStateFile("abc_sandbox:def.state")).toBe("abc");
    for (const other of ["abc_sandbox:abc.lock", "runsc-abc.sock", "abc.state", "x"]) {
      expect(idOfStateFile(other)).toBeUndefined();
    }
  });
});
