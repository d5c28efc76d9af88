import type { DescField, DescMessage, DescMethod, Message } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import type { RequestSubject } from "@turnbox/core";

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
  const only = onlyField(paths);
  // Most requests, and what is asked most often, are read without a look at what messages are made of.
  if (only !== undefined) return (message) => subjectOf([Reflect.get(message, only.localName)]);
  return (message) => {
    const root = reflect(method.input, message);
    return subjectOf(
      paths.map(([outer, inner]) => {
        const holder = inner === undefined ? root : root.isSet(outer) ? reflectedMessage(root.get(outer)) : undefined;
        return holder?.get(inner ?? outer);
      }),
    );
  };
}

function subjectOf(ids: readonly unknown[]): RequestSubject {
  const found = ids.filter((id) => typeof id === "string" && id !== "").map((id) => sessionPart(String(id)));
  const [sessionId] = found;
  return sessionId === undefined || found.some((id) => id !== sessionId) ? {} : { sessionId };
}

/** The field at the top of a request that alone can name its session; undefined if there is more to look at. */
function onlyField(paths: readonly FieldPath[]): DescField | undefined {
  const [[outer, inner] = [], ...others] = paths;
  return inner === undefined && others.length === 0 && outer?.oneof === undefined ? outer : undefined;
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
