import { control, type Control } from "../control-calls.ts";

type Lines = readonly string[];

/** Everything that a call may change in a fleet, as lines that can be compared. */
export async function controlState(to: Control): Promise<Lines> {
  return [
    ...(await pages(to, "SandboxControlService/ListSandboxes", "sandboxes")),
    ...(await pages(to, "FleetService/ListInstances", "instances")),
    ...linesOf((await control(to, "SandboxControlService/ListTemplates"))["templates"]),
  ].sort();
}

async function pages(to: Control, method: string, field: string): Promise<Lines> {
  const lines: string[] = [];
  for (let pageToken = ""; ; ) {
    const answer = await control(to, method, { page: { pageSize: 1000, pageToken } });
    lines.push(...linesOf(answer[field]));
    pageToken = (answer["page"] as { readonly nextPageToken?: string } | undefined)?.nextPageToken ?? "";
    if (pageToken === "") return lines;
  }
}

/** What is measured, and not said, is left out: it moves by itself. */
const linesOf = (items: unknown): Lines =>
  ((items ?? []) as readonly object[]).map((item) =>
    JSON.stringify(item, (name, value: unknown) =>
      ["spaceUsedBytes", "poolAvailableBytes", "activeTools", "sessionCount"].includes(name) ? undefined : value,
    ),
  );
