import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  ANY_TENANT,
  DEFAULT_TENANT,
  invalidArgument,
  parseEnum,
  parseKey,
  parseLabels,
  type TokenGrant,
  type TokenSigner,
} from "@turnbox/core";
import { principalOf } from "@turnbox/rpc/server";
import type {
  ConnectSandboxResponseSchema,
  ImportTemplateRequest,
  SandboxControlService,
} from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import type { ImportTemplateHeader } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { ToolsPolicy } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type { ControlCall, SandboxConnection, SandboxControl } from "../control/sandbox-control.ts";
import {
  fromCreateRequest,
  fromForkRequest,
  toWireCapabilities,
  toWireForkResult,
  toWireSandbox,
  toWireTemplate,
} from "./convert.ts";
import { defaultGrant, grantedTime, grantedVerbs } from "./grant.ts";
import { fromLaunchRequest, MAX_SIGNAL, toWireProcess } from "./process.ts";
import { parsePage, parsePositiveMs } from "./validate.ts";

export interface SandboxControlServiceOptions {
  readonly control: SandboxControl;
  /** Signs the tokens of `ConnectSandbox`. */
  readonly signer: TokenSigner;
}

const TOOLS: ReadonlyMap<number, "wait" | "refuse" | "kill"> = new Map([
  [ToolsPolicy.UNSPECIFIED, "wait"],
  [ToolsPolicy.WAIT, "wait"],
  [ToolsPolicy.REFUSE, "refuse"],
  [ToolsPolicy.KILL, "kill"],
]);

/** A caller that speaks for all tenants acts, if one is needed, for the default one. */
function callOf(context: HandlerContext): ControlCall {
  const { tenant } = principalOf(context);
  const timeoutMs = context.timeoutMs();
  return {
    signal: context.signal,
    tenant: tenant === ANY_TENANT ? DEFAULT_TENANT : tenant,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
}

type Methods = Partial<ServiceImpl<typeof SandboxControlService>>;

/** SandboxControlService: parse, call the control, convert. Methods that are not here answer `unimplemented`. */
export function createSandboxControlService(options: SandboxControlServiceOptions): Methods {
  return { ...lifeMethods(options), ...processMethods(options), ...providerMethods(options) };
}

/** From the create to the destroy of a sandbox, and the way to it. */
function lifeMethods({ control, signer }: SandboxControlServiceOptions): Methods {
  /** What a caller reaches a sandbox with: a token for it alone, by default for an hour and with all rights of the caller. */
  const grantAccess = (
    { url, sessionId, sandboxId }: SandboxConnection,
    context: HandlerContext,
    grant: Pick<TokenGrant, "verbs" | "lifetimeMs" | "notAfterMs"> = defaultGrant(principalOf(context)),
  ): MessageInitShape<typeof ConnectSandboxResponseSchema> => {
    const { token, expiresAtMs } = signer.sign({ tenant: callOf(context).tenant, sandbox: sessionId, ...grant });
    return { url, token: token.reveal(), expiresAt: timestampFromMs(expiresAtMs), sessionId, sandboxId };
  };

  return {
    createSandbox: async (request, context) => {
      const sandbox = await control.createSandbox(fromCreateRequest(request), callOf(context));
      const { sandboxId, connection } = sandbox;
      const access = connection === undefined ? {} : { access: grantAccess(connection, context) };
      return { sandboxId, sandbox: toWireSandbox(sandbox), ...access };
    },
    destroySandbox: async ({ sandboxId, idempotencyKey }, context) => {
      await control.destroySandbox(
        { sandboxId, idempotencyKey: parseKey("idempotency_key", idempotencyKey) },
        callOf(context),
      );
      return {};
    },
    getSandbox: async ({ sandboxId, name }, context) => {
      if (sandboxId !== "" && name !== "") throw invalidArgument("name", "must be empty where sandbox_id is given");
      return { sandbox: toWireSandbox(await control.getSandbox({ sandboxId, name }, callOf(context))) };
    },
    listSandboxes: async ({ page, selector }, context) => {
      const labels = parseLabels("selector.match_labels", selector?.matchLabels ?? {});
      const found = await control.listSandboxes({ labels, ...parsePage(page) }, callOf(context));
      return {
        sandboxes: found.sandboxes.map(toWireSandbox),
        page: { nextPageToken: found.nextPageToken },
        unreachableInstances: [...found.unreachableInstances],
      };
    },
    connectSandbox: async ({ sandboxId, ttl, verbs }, context) => {
      const caller = principalOf(context);
      const grant = { ...grantedTime(parsePositiveMs("ttl", ttl), caller), verbs: grantedVerbs(verbs, caller) };
      const connection = await control.connectSandbox({ sandboxId }, callOf(context));
      return grantAccess({ ...connection, sandboxId }, context, grant);
    },
    pauseSandbox: async ({ sandboxId, idempotencyKey, tools }, context) => {
      const request = {
        sandboxId,
        idempotencyKey: parseKey("idempotency_key", idempotencyKey),
        tools: parseEnum("tools", tools, TOOLS),
      };
      return { sandbox: toWireSandbox(await control.pauseSandbox(request, callOf(context))) };
    },
    resumeSandbox: async ({ sandboxId, idempotencyKey }, context) => {
      const request = { sandboxId, idempotencyKey: parseKey("idempotency_key", idempotencyKey) };
      return { sandbox: toWireSandbox(await control.resumeSandbox(request, callOf(context))) };
    },
    forkSandbox: async (request, context) => {
      const results = await control.forkSandbox(fromForkRequest(request), callOf(context));
      return { results: results.map(toWireForkResult) };
    },
  };
}

function processMethods({ control }: SandboxControlServiceOptions): Methods {
  return {
    launchProcess: async (request, context) => {
      const process = await control.launchProcess(fromLaunchRequest(request), callOf(context));
      return { process: toWireProcess(process) };
    },
    killProcess: async ({ sandboxId, processId, signal }, context) => {
      if (signal > MAX_SIGNAL) throw invalidArgument("signal", `must be from 0 to ${MAX_SIGNAL}`);
      await control.killProcess({ sandboxId, processId, signalNumber: signal }, callOf(context));
      return {};
    },
    getProcessStatus: async ({ sandboxId, processId }, context) => ({
      process: toWireProcess(await control.getProcessStatus({ sandboxId, processId }, callOf(context))),
    }),
  };
}

/** What is asked of the provider as a whole. */
function providerMethods({ control }: SandboxControlServiceOptions): Methods {
  return {
    getCapabilities: async (_request, context) => ({
      capabilities: toWireCapabilities(await control.capabilities(callOf(context))),
    }),
    importTemplate: async (requests, context) => {
      const { header, archive } = await openUpload(requests);
      const { idempotencyKey, name } = header;
      const request = { idempotencyKey: parseKey("idempotency_key", idempotencyKey), name, archive };
      const { template, hosts } = await control.importTemplate(request, callOf(context));
      return { template: toWireTemplate(template), hosts };
    },
    listTemplates: async (_request, context) => ({
      templates: (await control.listTemplates(callOf(context))).map(toWireTemplate),
    }),
  };
}

interface Upload {
  readonly header: ImportTemplateHeader;
  readonly archive: AsyncIterable<Uint8Array>;
}

/** Reads the header of an upload; the rest is read when the archive is. */
async function openUpload(requests: AsyncIterable<ImportTemplateRequest>): Promise<Upload> {
  const iterator = requests[Symbol.asyncIterator]();
  const first = await iterator.next();
  const part = first.done === true ? undefined : first.value.part;
  if (part?.case !== "header") throw invalidArgument("header", "must be the first message");
  async function* archive(): AsyncGenerator<Uint8Array> {
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) {
      if (next.value.part.case !== "data") throw invalidArgument("data", "must be what follows the header");
      yield next.value.part.value;
    }
  }
  return { header: part.value, archive: archive() };
}
