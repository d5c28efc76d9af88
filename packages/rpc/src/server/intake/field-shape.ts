import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";

export const VARINT = 0;
export const FIXED_64 = 1;
export const DELIMITED = 2;
export const FIXED_32 = 5;

/** What a field holds: a message to go into, a text to check, numbers that may be packed, or bytes that are not looked at. */
export interface Shape {
  readonly name: string;
  readonly wireType: number;
  readonly message?: ReadonlyMap<number, Shape>;
  /** By how much deeper the message lies; the parser does not count the entries of maps. */
  readonly deeper?: 0 | 1;
  readonly text?: "utf8";
  /** The wire type of each of many numbers in one field. */
  readonly packed?: number;
}

const known = new WeakMap<DescMessage, ReadonlyMap<number, Shape>>();

/** The fields of a message by their numbers. */
export function shapesOf(desc: DescMessage): ReadonlyMap<number, Shape> {
  const found = known.get(desc);
  if (found !== undefined) return found;
  const shapes = new Map<number, Shape>();
  // Messages may hold themselves.
  known.set(desc, shapes);
  for (const field of desc.fields) shapes.set(field.number, shapeOf(field));
  return shapes;
}

function shapeOf(field: DescField): Shape {
  const { name } = field;
  switch (field.fieldKind) {
    case "scalar":
      return scalarShape(name, field.scalar);
    case "enum":
      return { name, wireType: VARINT };
    case "message":
      return { name, wireType: DELIMITED, message: shapesOf(field.message) };
    case "list":
      return listShape(field);
    case "map":
      return { name, wireType: DELIMITED, message: entryShapes(field), deeper: 0 };
  }
}

function listShape(field: DescField & { readonly fieldKind: "list" }): Shape {
  const { name } = field;
  if (field.listKind === "message") return { name, wireType: DELIMITED, message: shapesOf(field.message) };
  const one = field.listKind === "enum" ? { name, wireType: VARINT } : scalarShape(name, field.scalar);
  return one.wireType === DELIMITED ? one : { ...one, packed: one.wireType };
}

/** An entry of a map is a message of a key and a value. */
function entryShapes(field: DescField & { readonly fieldKind: "map" }): ReadonlyMap<number, Shape> {
  const { name } = field;
  const value =
    field.mapKind === "message"
      ? { name, wireType: DELIMITED, message: shapesOf(field.message) }
      : field.mapKind === "enum"
        ? { name, wireType: VARINT }
        : scalarShape(name, field.scalar);
  return new Map([
    [1, scalarShape(name, field.mapKey)],
    [2, value],
  ]);
}

function scalarShape(name: string, type: ScalarType): Shape {
  if (type === ScalarType.STRING) return { name, wireType: DELIMITED, text: "utf8" };
  return { name, wireType: WIRE_TYPES[type] ?? VARINT };
}

/** All others are numbers of as many bytes as they need. */
const WIRE_TYPES: Readonly<Partial<Record<ScalarType, number>>> = {
  [ScalarType.BYTES]: DELIMITED,
  [ScalarType.DOUBLE]: FIXED_64,
  [ScalarType.FIXED64]: FIXED_64,
  [ScalarType.SFIXED64]: FIXED_64,
  [ScalarType.FLOAT]: FIXED_32,
  [ScalarType.FIXED32]: FIXED_32,
  [ScalarType.SFIXED32]: FIXED_32,
};
