import type { Command } from "commander";
import type { Template } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { CALL_MS } from "../deadline.ts";
import { formatAge } from "../format/duration.ts";
import { formatSize } from "../format/size.ts";
import { formatTable, type TableLook } from "../format/table.ts";
import { importResult, importTemplate } from "../import-template.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { tableLook } from "../output.ts";
import { toIso } from "../sandbox-view.ts";
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
    using server = await invocation.server(options);
    const { templates } = await server.sandboxes.listTemplates(
      {},
      { signal: invocation.signal, timeoutMs: CALL_MS.read },
    );
    const output = invocation.output(options);
    const views = templates.map(toTemplateView);
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
    using server = await invocation.server(options);
    const imported = await importTemplate(server, { name, path, options }, invocation);
    await invocation.output(options).result(importResult(imported, name));
  });
}

interface TemplateView {
  readonly name: string;
  readonly digest: string;
  readonly latest: boolean;
  readonly sizeBytes: number;
  readonly createdAt: string | null;
}

const toTemplateView = ({ name, digest, latest, sizeBytes, createdAt }: Template): TemplateView => ({
  name,
  digest,
  latest,
  sizeBytes: Number(sizeBytes),
  createdAt: toIso(createdAt),
});

const formatTemplates = (templates: readonly TemplateView[], nowMs: number, look: TableLook): string =>
  formatTable(
    ["NAME", "VERSION", "SIZE", "AGE", "TAG"],
    templates.map(({ name, digest, latest, sizeBytes, createdAt }) => [
      name,
      digest.slice(0, 12),
      formatSize(sizeBytes),
      createdAt === null ? "" : formatAge(nowMs - Date.parse(createdAt)),
      latest ? "latest" : "",
    ]),
    look,
  );
