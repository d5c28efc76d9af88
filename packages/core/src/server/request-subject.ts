import type { DescField, DescMessage, DescMethod, Message } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import type { RequestSubject } from "../token/authorize.ts";

/** The fields that name what a request is about, by their proto names. */
const ID_FIELDS: ReadonlySet<string> = new Set(["session_id", "sandbox_id"]);

/** Reads from a request which session it is about. */
export type SubjectReader = (message: Message) => RequestSubject;

/**
 * Finds the id fields of a method's request: at the top, or else one level down (the header of an upload). A request that
 * names two different sessions is about none.
 */
export function createSubjectReader(method: DescMethod): SubjectReader {
  const paths = findIdFields(method.input);
  return (message) => {
    const found = new Set<string>();
    for (const [outer, inner] of paths) {
      const root = reflect(method.input, message);
      const holder = inner === undefined ? root : root.isSet(outer) ? reflectedMessage(root.get(outer)) : undefined;
      const value = holder?.get(inner ?? outer);
      if (typeof value === "string" && value !== "") found.add(sessionPart(value));
    }
    const [sessionId, ...others] = found;
    return sessionId === undefined || others.length > 0 ? {} : { sessionId };
  };
}

type FieldPath = readonly [outer: DescField, inner?: DescField];

function findIdFields(input: DescMessage): readonly FieldPath[] {
  const top = idFieldsOf(input).map((field): FieldPath => [field]);
  if (top.length > 0) return top;
  return input.fields.flatMap((outer) =>
    outer.fieldKind === "message" ? idFieldsOf(outer.message).map((inner): FieldPath => [outer, inner]) : [],
  );
}

const idFieldsOf = (message: DescMessage): readonly DescField[] =>
  message.fields.filter((field) => ID_FIELDS.has(field.name) && field.fieldKind === "scalar");

type Reflected = ReturnType<typeof reflect>;

function reflectedMessage(value: unknown): Reflected | undefined {
  return typeof value === "object" && value !== null && "fields" in value ? (value as Reflected) : undefined;
}

/** `fleet:<instance>:<session>` names the session in its last part; any other id is the session's own. */
export function sessionPart(id: string): string {
  return /^fleet:[^:]+:([^:]+)$/.exec(id)?.[1] ?? id;
}
