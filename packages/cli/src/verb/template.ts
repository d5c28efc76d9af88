import type { Command } from "commander";
import type { Template } from "@turnbox/client";
import { formatAge } from "../format/duration.ts";
import { formatSize } from "../format/size.ts";
import { formatTable, type TableLook } from "../format/table.ts";
import { importResult, importTemplate } from "../import-template.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { tableLook } from "../output.ts";
import { registerTemplateBuild } from "./template-build.ts";
import { registerTemplateRm } from "./template-rm.ts";

export function registerTemplate(program: Command, invocation: Invocation): void {
  const template = program
    .command("template")
    .summary("list, import, build and remove templates")
    .description("Templates: what sandboxes start from.");
  registerTemplateLs(template, invocation);
  registerTemplateImport(template, invocation);
  registerTemplateBuild(template, invocation);
  registerTemplateRm(template, invocation);
}

function registerTemplateLs(template: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(template.command("ls")).summary("list templates").description("List the templates of all hosts."),
    [["turnbox template ls", "all versions"]],
  ).action(async (options: ServerOptions) => {
    using turnbox = invocation.turnbox(options);
    const views = (await turnbox.templates({ signal: invocation.signal })).map(toTemplateView);
    const output = invocation.output(options);
    await output.result({
      json: { templates: views },
      text: formatTemplates(views, invocation.surroundings.clock.nowMs(), tableLook(output)),
    });
  });
}

function registerTemplateImport(template: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(template.command("import <name> <file>"))
      .summary("make a template from a tar archive")
      .description("Make a template from a tar archive (plain or gzip) of a root filesystem, on every host."),
    [["turnbox template import alpine rootfs.tar", "from an unpacked image's archive"]],
  ).action(async (name: string, path: string, options: ServerOptions) => {
    using turnbox = invocation.turnbox(options);
    const imported = await importTemplate(turnbox, { name, path, options }, invocation);
    await invocation.output(options).result(importResult(imported));
  });
}

interface TemplateView {
  readonly name: string;
  readonly digest: string;
  readonly latest: boolean;
  readonly sizeBytes: number;
  readonly createdAt: string;
}

const toTemplateView = ({ name, digest, latest, sizeBytes, createdAt }: Template): TemplateView => ({
  name,
  digest,
  latest,
  sizeBytes,
  createdAt: createdAt.toISOString(),
});

const formatTemplates = (templates: readonly TemplateView[], nowMs: number, look: TableLook): string =>
  formatTable(
    ["NAME", "VERSION", "SIZE", "AGE", "TAG"],
    templates.map(({ name, digest, latest, sizeBytes, createdAt }) => [
      name,
      digest.slice(0, 12),
      formatSize(sizeBytes),
      formatAge(nowMs - Date.parse(createdAt)),
      latest ? "latest" : "",
    ]),
    look,
  );
