import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Application, Comment, CommentTag, Converter, LogLevel, ReferenceType, ReflectionKind } from "typedoc";
import { root } from "../bootstrap/layout.mjs";
import { contentsOf, tidyMarkdown } from "./tidy-markdown.mjs";

/** What the published exports of the libraries lead to. */
const ENTRY_POINTS = [
  "packages/client/src/index.ts",
  "packages/agents/src/index.ts",
  "packages/agents/src/provider/conformance/index.ts",
];

/** The chapters, in their order, by where their declarations are. */
const CHAPTERS = [
  ["Connecting", /client\/src\/turnbox\//],
  ["Working in a sandbox", /client\/src\/sandbox\//],
  ["The machines of a fleet", /client\/src\/fleet\//],
  ["A session on a host", /client\/src\/host\//],
  ["Environments", /agents\/src\/environment\//],
  ["Testing a provider", /agents\/src\/provider\/conformance\//],
  ["Providers", /agents\/src\/provider\//],
  ["Errors", /core\/(src|dist)\/error\//],
  ["Clients of the services", /./],
];

const OPTIONS = {
  plugin: ["typedoc-plugin-markdown"],
  entryPoints: ENTRY_POINTS.map((file) => path.join(root, file)),
  // The one that finds our packages as sources.
  tsconfig: path.join(root, "scripts/docs/tsconfig.json"),
  // The build has checked it.
  skipErrorChecking: true,
  logLevel: LogLevel.Error,
  readme: "none",
  excludeExternals: true,
  disableSources: true,
  sort: ["source-order"],
  categorizeByGroup: false,
  categoryOrder: CHAPTERS.map(([title]) => title),
  outputFileStrategy: "modules",
  hideBreadcrumbs: true,
  hidePageHeader: true,
  useCodeBlocks: true,
  expandParameters: true,
  parametersFormat: "table",
  interfacePropertiesFormat: "table",
  classPropertiesFormat: "table",
  typeAliasPropertiesFormat: "table",
  propertyMembersFormat: "table",
  tableColumnSettings: { hideDefaults: true, hideInherited: true, hideModifiers: true, hideOverrides: true },
};

/** Kinds whose readers look for a sentence. */
const NAMED =
  ReflectionKind.Class |
  ReflectionKind.Interface |
  ReflectionKind.Function |
  ReflectionKind.TypeAlias |
  ReflectionKind.Variable;

const hasComment = (reflection) =>
  reflection.hasComment() || (reflection.signatures ?? []).some((signature) => signature.hasComment());

/** Puts a declaration into the chapter of its file, by the tag that typedoc sorts by. */
function assignChapter(context, reflection) {
  const file = context.getSymbolFromReflection(reflection)?.declarations?.[0]?.getSourceFile().fileName ?? "";
  const [title] = CHAPTERS.find(([, where]) => where.test(file));
  const tag = new CommentTag("@category", [{ kind: "text", text: title }]);
  for (const owner of reflection.signatures ?? [reflection]) {
    owner.comment ??= new Comment();
    owner.comment.blockTags.push(tag);
  }
}

/** The compiler hands the reasons on one by one, where their name says it. */
function nameReasons(project, member) {
  const isLong = member.type?.type === "union" && member.type.types.length > 30;
  const reason = project.children?.[0]?.getChildByName("Reason");
  if (isLong && reason !== undefined) member.type = ReferenceType.createResolvedReference("Reason", reason, project);
}

/** The client comes before what is built on it. */
const rank = (file) => (file.startsWith("client") ? 0 : 1);

/** The text of each entry point, without its title. Their own list of entry points is not among them. */
const readPages = (folder) =>
  readdirSync(folder, { recursive: true })
    .filter((file) => file.endsWith(".md") && file !== "README.md")
    .sort((one, other) => rank(one) - rank(other) || (one < other ? -1 : 1))
    .map((file) => readFileSync(path.join(folder, file), "utf8").replace(/^# .*\n/, ""));

/** The reference of what the libraries export, in one text, and the exported names that say nothing of themselves. */
export async function apiReference() {
  const app = await Application.bootstrapWithPlugins(OPTIONS);
  const undocumented = [];
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, (context) => {
    const declarations = (context.project.children ?? []).flatMap((module) => module.children ?? []);
    for (const reflection of declarations) {
      if (reflection.kindOf(NAMED) && !hasComment(reflection)) undocumented.push(reflection.name);
      assignChapter(context, reflection);
    }
  });
  app.converter.on(Converter.EVENT_RESOLVE_END, ({ project }) => {
    for (const member of project.getReflectionsByKind(ReflectionKind.All)) {
      if (member.inheritedFrom !== undefined) project.removeReflection(member);
      else nameReasons(project, member);
    }
  });
  const project = await app.convert();
  if (project === undefined) throw new Error("typedoc made nothing of the libraries");
  const folder = mkdtempSync(path.join(tmpdir(), "turnbox-docs-"));
  try {
    await app.outputs.writeOutput({ name: "markdown", path: folder }, project);
    const body = tidyMarkdown(readPages(folder).join("\n"));
    return { text: `# @turnbox/client and @turnbox/agents\n\n${contentsOf(body)}\n\n${body}`, undocumented };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
