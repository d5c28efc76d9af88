import { Readable, Writable } from "node:stream";
import { ndJsonStream } from "@agentclientprotocol/sdk";
import { createScriptedAgent } from "./scripted-agent.suite.ts";

process.stderr.write("the scripted agent is up\n");
const input = Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>;
const { closed } = createScriptedAgent().connect(ndJsonStream(Writable.toWeb(process.stdout), input));
await closed;
