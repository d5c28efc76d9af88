import type { Command } from "commander";
import { SandboxError, type Template } from "@turnbox/client";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { ambiguous } from "@turnbox/client/internal";

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
    using turnbox = invocation.turnbox(options);
    const { name, digest } = matchTemplate(reference, await turnbox.templates({ signal }));
    const hosts = await turnbox.removeTemplate({ name, digest }, { signal });
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
