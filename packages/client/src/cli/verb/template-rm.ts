import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import { hasReason, SandboxError } from "@turnbox/core";
import type { Template } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { CALL_MS } from "../deadline.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { ambiguous } from "../../turnbox/sandbox-reference.ts";
import { assertTrusted, listHosts } from "../resolve/trusted-hosts.ts";

export function registerTemplateRm(template: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(template.command("rm <template>"))
      .summary("remove a template version")
      .description("Remove a version of a template from every host. The name alone means its only version."),
    [
      ["turnbox template rm debian", "the only version"],
      ["turnbox template rm debian@4f2c9a10", "one of several, by a prefix of its digest"],
    ],
  ).action(async (reference: string, options: ServerOptions) => {
    const { signal } = invocation;
    using server = await invocation.server(options);
    const { templates } = await server.sandboxes.listTemplates({}, { signal, timeoutMs: CALL_MS.read });
    const { name, digest } = matchTemplate(reference, templates);
    const fleet = await listHosts(server, { signal });
    // Nothing is removed before all are fit.
    assertTrusted("templates are removed", fleet, server);
    const idempotencyKey = randomUUID();
    let hosts = 0;
    for (const { url } of fleet) {
      using host = invocation.host({ url, token: server.endpoint.token });
      try {
        await host.host.deleteTemplate({ idempotencyKey, name, digest }, { signal, timeoutMs: CALL_MS.change });
        hosts += 1;
      } catch (thrown) {
        if (!hasReason(thrown, "TEMPLATE_NOT_FOUND")) throw thrown;
      }
    }
    await invocation.output(options).result({
      json: { name, digest, hosts },
      text: `removed ${name}@${digest.slice(0, 12)} from ${String(hosts)} ${hosts === 1 ? "host" : "hosts"}\n`,
    });
  });
}

/** The one version that `name` or `name@prefix` means. */
export function matchTemplate(
  reference: string,
  templates: readonly Pick<Template, "name" | "digest">[],
): Pick<Template, "name" | "digest"> {
  const at = reference.indexOf("@");
  const name = at < 0 ? reference : reference.slice(0, at);
  const prefix = at < 0 ? "" : reference.slice(at + 1);
  const matches = templates.filter((template) => template.name === name && template.digest.startsWith(prefix));
  const [first, ...others] = matches;
  if (first === undefined) {
    throw new SandboxError("TEMPLATE_NOT_FOUND", `no template is called ${JSON.stringify(reference)}`, {
      metadata: { reference },
    });
  }
  if (others.length === 0) return first;
  throw ambiguous(
    "template",
    reference,
    matches.map(({ digest }) => `${name}@${digest.slice(0, 12)}`),
  );
}
