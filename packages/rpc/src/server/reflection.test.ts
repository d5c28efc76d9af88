import { type DescFile, fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { createClient, createRouterTransport } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import {
  file_grpc_reflection_v1_reflection,
  ServerReflection,
} from "@turnbox/protocol/grpc/reflection/v1/reflection_pb";
import { ServerReflection as ServerReflectionAlpha } from "@turnbox/protocol/grpc/reflection/v1alpha/reflection_pb";
import { file_turnbox_host_v1_session } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { file_turnbox_host_v1_tool } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { createManualClock, createTestAccess } from "@turnbox/core/testing";
import { registerReflection } from "./reflection.ts";
import { createRouterOptions } from "./router-options.ts";

const FILES: readonly DescFile[] = [
  file_turnbox_host_v1_session,
  file_turnbox_host_v1_tool,
  file_grpc_reflection_v1_reflection,
];

const clock = createManualClock();
const access = createTestAccess({ clock });
const router = createRouterOptions({ ...access, clock });
const transport = createRouterTransport((routes) => registerReflection(routes, FILES), {
  router,
  transport: { interceptors: [access.bearer(access.sign({ verbs: ["read"], sandbox: "s1" }))] },
});
const client = createClient(ServerReflection, transport);

type Question = Parameters<typeof client.serverReflectionInfo>[0] extends AsyncIterable<infer Q> ? Q : never;

async function ask(question: Question) {
  const questions = (async function* () {
    yield await Promise.resolve(question);
  })();
  for await (const answer of client.serverReflectionInfo(questions)) return answer.messageResponse;
  throw new Error("no answer");
}

async function filesFor(question: Question): Promise<FileDescriptorProto[]> {
  const answer = await ask(question);
  if (answer.case !== "fileDescriptorResponse") throw new Error(`got ${answer.case}`);
  return answer.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
}

describe("gRPC reflection", () => {
  it("lists the services", async () => {
    expect(await ask({ messageRequest: { case: "listServices", value: "" } })).toMatchObject({
      case: "listServicesResponse",
      value: {
        service: [
          { name: "grpc.health.v1.Health" },
          { name: "grpc.reflection.v1.ServerReflection" },
          { name: "turnbox.host.v1.SessionService" },
          { name: "turnbox.host.v1.ToolService" },
        ],
      },
    });
  });

  it.each([
    "turnbox.host.v1.SessionService",
    "turnbox.host.v1.SessionService.CreateSession",
    "turnbox.host.v1.GetSessionRequest",
    "turnbox.host.v1.GetSessionRequest.session_id",
    ".turnbox.host.v1.GetSessionRequest",
  ])("finds the file of %s with everything it imports, each file once", async (symbol) => {
    const files = await filesFor({ messageRequest: { case: "fileContainingSymbol", value: symbol } });
    const names = files.map((file) => file.name);
    expect(names[0]).toBe("turnbox/host/v1/session.proto");
    expect(new Set(names).size).toBe(names.length);
    for (const file of files) for (const dependency of file.dependency) expect(names).toContain(dependency);
  });

  it("finds a file by its name, and an enum value beside its enum", async () => {
    const name = "turnbox/common/v1/access.proto";
    expect((await filesFor({ messageRequest: { case: "fileByFilename", value: name } }))[0]?.name).toBe(name);
    const byValue = await filesFor({
      messageRequest: { case: "fileContainingSymbol", value: "turnbox.common.v1.VERB_READ" },
    });
    expect(byValue[0]?.name).toBe(name);
  });

  it("keeps our method options in the bytes", async () => {
    const [file] = await filesFor({
      messageRequest: { case: "fileContainingSymbol", value: "turnbox.host.v1.ToolService" },
    });
    const options = file?.service[0]?.method[0]?.options;
    expect(options?.$unknown?.map((field) => field.no)).toEqual(expect.arrayContaining([50001, 50002]));
  });

  it("answers about extensions", async () => {
    const containingType = "google.protobuf.MethodOptions";
    const files = await filesFor({
      messageRequest: { case: "fileContainingExtension", value: { containingType, extensionNumber: 50001 } },
    });
    expect(files[0]?.name).toBe("turnbox/common/v1/access.proto");
    expect(await ask({ messageRequest: { case: "allExtensionNumbersOfType", value: containingType } })).toMatchObject({
      value: { baseTypeName: containingType, extensionNumber: [50001, 50002, 50003, 50004] },
    });
  });

  it.each([
    [{ case: "fileByFilename", value: "../etc/passwd" }],
    [{ case: "fileContainingSymbol", value: "__proto__" }],
    [{ case: "allExtensionNumbersOfType", value: "no.such.Type" }],
    [{ case: "fileContainingExtension", value: { containingType: "no.such.Type", extensionNumber: 1 } }],
  ] as const)("answers not_found to %j, and goes on", async (messageRequest) => {
    expect(await ask({ messageRequest })).toMatchObject({ case: "errorResponse", value: { errorCode: 5 } });
  });

  it("speaks v1alpha too, and needs a token for both", async () => {
    const questions = async function* () {
      yield await Promise.resolve({ messageRequest: { case: "listServices" as const, value: "" } });
    };
    for await (const answer of createClient(ServerReflectionAlpha, transport).serverReflectionInfo(questions())) {
      expect(answer.messageResponse.case).toBe("listServicesResponse");
    }
    const stranger = createClient(
      ServerReflection,
      createRouterTransport((routes) => registerReflection(routes, FILES), { router }),
    );
    const read = async (): Promise<void> => {
      for await (const answer of stranger.serverReflectionInfo(questions())) throw new Error(answer.validHost);
    };
    await expect(read()).rejects.toThrow("unauthenticated");
  });
});
