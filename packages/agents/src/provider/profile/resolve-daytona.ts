import { invalidArgument, parseDurationMs } from "@turnbox/client/internal";
import { fieldsOf, parseChoice, parseText, type RawFields } from "./field.ts";
import { type Backend, DAYTONA_STARTUP_SOURCES, type DaytonaConfig, type DaytonaStartupSource } from "./resolved.ts";

const FIELDS: readonly (keyof DaytonaConfig)[] = [
  "apiUrl",
  "target",
  "image",
  "snapshot",
  "class",
  "autoStop",
  "autoArchive",
  "startupSource",
  "startupRef",
];

/** Daytona's part of a profile: there if the backend is `daytona`, and nowhere else. */
export function resolveDaytona(value: unknown, backend: Backend): DaytonaConfig | undefined {
  if (backend !== "daytona") {
    if (value !== undefined) throw invalidArgument("daytona", "must be left out where backend is not daytona");
    return undefined;
  }
  const given = value === undefined ? {} : fieldsOf("daytona", value, FIELDS);
  const text = (name: keyof DaytonaConfig): string =>
    parseText(`daytona.${name}`, given[name] ?? "", { maxBytes: 1024, empty: "allowed" });
  const image = text("image");
  const snapshot = text("snapshot");
  const startupSource = parseSource(given, { image, snapshot });
  const startupRef = text("startupRef");
  return {
    apiUrl: parseUrl(text("apiUrl")),
    target: text("target"),
    image,
    snapshot,
    class: text("class"),
    autoStop: parseInterval("daytona.autoStop", text("autoStop")),
    autoArchive: parseInterval("daytona.autoArchive", text("autoArchive")),
    startupSource,
    startupRef: startupRef === "" ? { image, snapshot }[startupSource] : startupRef,
  };
}

/** Of an image and a snapshot, the one that is given; both need a word on which of them counts. */
function parseSource(
  given: RawFields,
  { image, snapshot }: { readonly image: string; readonly snapshot: string },
): DaytonaStartupSource {
  const source = given["startupSource"];
  if (source !== undefined) return parseChoice("daytona.startupSource", source, DAYTONA_STARTUP_SOURCES);
  if (image !== "" && snapshot !== "") {
    throw invalidArgument("daytona.startupSource", "must be given where image and snapshot are both given");
  }
  return snapshot === "" ? "image" : "snapshot";
}

function parseUrl(value: string): string {
  if (value === "") return value;
  if (!URL.canParse(value) || !["http:", "https:"].includes(new URL(value).protocol)) {
    throw invalidArgument("daytona.apiUrl", "must be an http or https address");
  }
  return value;
}

function parseInterval(field: string, value: string): string {
  if (value !== "" && parseDurationMs(value) === undefined) throw invalidArgument(field, "must be a duration, as 15m");
  return value;
}
