import { describe, expect, it } from "@jest/globals";
import { lacksTimeouts, mendBusybox } from "./mini.ts";

const FATAL = "\0^cqSO:o:P:Y:U:T:+t:n::\0";

describe("mendBusybox", () => {
  it("changes the one option that wget dies of, and nothing else", () => {
    const program = Buffer.from(`before${FATAL}after`, "latin1");
    expect(mendBusybox(program)).toBe("mended");
    expect(program.toString("latin1")).toBe("before\0^cqSO:o:P:Y::U:T:t:n::\0after");
    expect(mendBusybox(program)).toBe("unchanged");
  });

  it("leaves a program alone that has no such options, or has them twice", () => {
    for (const text of ["", "\0^cqSO:o:P:Y:U:T:t:n::\0", FATAL + FATAL]) {
      const program = Buffer.from(text, "latin1");
      expect(mendBusybox(program)).toBe("unchanged");
      expect(program.toString("latin1")).toBe(text);
    }
  });
});

describe("lacksTimeouts", () => {
  it("finds in the help whether wget has the option", () => {
    expect(lacksTimeouts("\t-S    \t\tShow server response\n\t-T SEC\t\tNetwork read timeout is SEC seconds\n")).toBe(
      false,
    );
    expect(lacksTimeouts("\t-S    \t\tShow server response\n\t-U STR\t\tUse STR for User-Agent header\n")).toBe(true);
  });
});
