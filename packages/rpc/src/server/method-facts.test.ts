import type { DescFile, DescMethod } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { file_grpc_reflection_v1_reflection } from "@turnbox/protocol/grpc/reflection/v1/reflection_pb";
import { file_grpc_reflection_v1alpha_reflection } from "@turnbox/protocol/grpc/reflection/v1alpha/reflection_pb";
import { file_health_v1_health } from "@turnbox/protocol/health/v1/health_pb";
import { file_turnbox_control_v1_fleet } from "@turnbox/protocol/turnbox/control/v1/fleet_pb";
import { file_turnbox_control_v1_sandbox_control } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { file_turnbox_host_v1_file } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import { file_turnbox_host_v1_host } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { file_turnbox_host_v1_process } from "@turnbox/protocol/turnbox/host/v1/process_pb";
import { file_turnbox_host_v1_session, SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { file_turnbox_host_v1_snapshot } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import { file_turnbox_host_v1_tool } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { methodFacts } from "./method-facts.ts";
import { createSubjectReader } from "./request-subject.ts";

const methodsOf = (...files: DescFile[]): [string, DescMethod][] =>
  files.flatMap((file) =>
    file.services.flatMap((service) =>
      service.methods.map((method): [string, DescMethod] => [`${service.name}.${method.name}`, method]),
    ),
  );

const OURS = methodsOf(
  file_turnbox_control_v1_fleet,
  file_turnbox_control_v1_sandbox_control,
  file_turnbox_host_v1_file,
  file_turnbox_host_v1_host,
  file_turnbox_host_v1_process,
  file_turnbox_host_v1_session,
  file_turnbox_host_v1_snapshot,
  file_turnbox_host_v1_tool,
);

describe("methodFacts", () => {
  it.each(OURS)("finds verb and scope on %s, so that no method is forgotten (attack 57)", (_name, method) => {
    expect(methodFacts(method).verb).toBeDefined();
  });

  it.each(OURS.filter(([, method]) => methodFacts(method).scope === "session"))(
    "finds the session that a request of %s names",
    (_name, method) => {
      const fields = method.input.fields.flatMap((field) => [
        field,
        ...(field.fieldKind === "message" ? field.message.fields : []),
      ]);
      expect(fields.some((field) => field.name === "session_id" || field.name === "sandbox_id")).toBe(true);
      expect(createSubjectReader(method)).toBeInstanceOf(Function);
    },
  );

  it.each(["HealthCheck", "DestroySession", "KillProcess", "DestroySandbox", "CancelToolCall"])(
    "keeps room for %s under overload",
    (name) => {
      const found = OURS.filter(([, method]) => method.name === name);
      expect(found.length).toBeGreaterThan(0);
      for (const [, method] of found) expect(methodFacts(method).lane).toBe("reserved");
    },
  );

  it("opens health to everybody and reflection to readers", () => {
    for (const [, method] of methodsOf(file_health_v1_health)) {
      const lane = method.name === "Watch" ? "normal" : "reserved";
      expect(methodFacts(method)).toEqual({ verb: "public", lane, scope: "none" });
    }
    for (const [, method] of methodsOf(file_grpc_reflection_v1_reflection, file_grpc_reflection_v1alpha_reflection)) {
      expect(methodFacts(method)).toEqual({ verb: "read", lane: "normal", scope: "none" });
    }
  });

  it("refuses a method without options (fail closed)", () => {
    const { getSession } = SessionService.method;
    const bare = { ...getSession, proto: { ...getSession.proto, options: undefined } } as unknown as DescMethod;
    expect(methodFacts(bare).verb).toBeUndefined();
  });
});
