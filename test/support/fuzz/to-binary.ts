import { type DescField, fromJson, ScalarType, toBinary } from "@bufbuild/protobuf";
import { StructSchema } from "@bufbuild/protobuf/wkt";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { Chance } from "./chance.ts";
import type { Branch, Item, Leaf, Tree, Value } from "./tree.ts";

/** The binary form. With `chance` it is broken at some places; without, it is as well-formed as the values allow. */
export function toBinaryForm(tree: Tree, chance?: Chance): Uint8Array {
  const bytes = messageBytes(tree, chance);
  return chance === undefined ? bytes : breakBytes(bytes, chance);
}

function messageBytes(tree: Tree, chance?: Chance): Uint8Array {
  const writer = new BinaryWriter();
  for (const branch of tree.branches) {
    writeBranch(writer, branch, chance);
    // The same field a second time: the last one counts, messages are merged.
    if (chance?.happens(0.05) === true) writeBranch(writer, branch, chance);
    if (chance?.happens(0.05) === true) writeUnknown(writer, chance);
  }
  return writer.finish();
}

function writeBranch(writer: BinaryWriter, { field, items }: Branch, chance?: Chance): void {
  for (const item of items) {
    if (chance?.happens(0.05) === true) writeWrongType(writer, field, chance);
    else if (field.fieldKind === "map") writeEntry(writer, field, item, chance);
    else writeValue(writer, { number: field.number, scalar: scalarOf(field) }, item.value, chance);
  }
}

interface Place {
  readonly number: number;
  readonly scalar: ScalarType;
}

/** Enums are written as int32. */
function scalarOf(field: DescField): ScalarType {
  if (field.fieldKind === "scalar") return field.scalar;
  return field.fieldKind === "list" && field.listKind === "scalar" ? field.scalar : ScalarType.INT32;
}

function writeEntry(writer: BinaryWriter, field: DescField, { key = "", value }: Item, chance?: Chance): void {
  if (field.fieldKind !== "map") return;
  const scalar = field.mapKind === "scalar" ? field.scalar : ScalarType.INT32;
  writer.tag(field.number, WireType.LengthDelimited).fork();
  writeValue(writer, { number: 1, scalar: field.mapKey }, { kind: "leaf", leaf: key }, chance);
  writeValue(writer, { number: 2, scalar }, value, chance);
  writer.join();
}

function writeValue(writer: BinaryWriter, place: Place, value: Value, chance?: Chance): void {
  if (value.kind === "leaf") writeLeaf(writer, place, value.leaf);
  else writer.tag(place.number, WireType.LengthDelimited).bytes(bytesOf(value, chance));
}

function bytesOf(value: Exclude<Value, { kind: "leaf" }>, chance?: Chance): Uint8Array {
  if (value.kind === "message") return messageBytes(value.tree, chance);
  return toBinary(StructSchema, fromJson(StructSchema, value.json));
}

function writeLeaf(writer: BinaryWriter, { number, scalar }: Place, leaf: Leaf): void {
  if (typeof leaf === "string") {
    // Lone surrogates become bytes that are not UTF-8, as a careless client sends them.
    writer.tag(number, WireType.LengthDelimited).bytes(utf8Of(leaf));
  } else if (leaf instanceof Uint8Array) {
    writer.tag(number, WireType.LengthDelimited).bytes(leaf);
  } else if (scalar === ScalarType.DOUBLE) {
    writer.tag(number, WireType.Bit64).double(Number(leaf));
  } else if (scalar === ScalarType.FLOAT) {
    writer.tag(number, WireType.Bit32).float(Math.fround(Number(leaf)));
  } else {
    writer.tag(number, WireType.Varint).raw(varint(BigInt(leaf)));
  }
}

function utf8Of(text: string): Uint8Array {
  if (text.isWellFormed()) return Buffer.from(text);
  return Buffer.concat(
    Array.from(text, (character) =>
      character.isWellFormed() ? Buffer.from(character) : Buffer.from([0xed, 0xa0, 0x80]),
    ),
  );
}

/** As many as ten bytes, whatever the field's type has room for. */
function varint(value: bigint): Uint8Array {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return Uint8Array.from([...bytes, Number(rest)]);
}

/** A field that the schema does not have. */
function writeUnknown(writer: BinaryWriter, chance: Chance): void {
  const number = chance.of([50, 999, 19_000, 536_870_911]);
  writer.tag(number, WireType.LengthDelimited).bytes(chance.bytes(chance.below(20)));
}

function writeWrongType(writer: BinaryWriter, { number }: DescField, chance: Chance): void {
  const type = chance.of([WireType.Varint, WireType.Bit64, WireType.LengthDelimited, WireType.Bit32] as const);
  writer.tag(number, type).raw(chance.bytes(chance.of([1, 4, 8, 9])));
}

/** What is no message any more: cut off, flipped, open groups, lengths beyond the end, a varint without end. */
function breakBytes(bytes: Uint8Array, chance: Chance): Uint8Array {
  switch (chance.below(8)) {
    case 0:
      return bytes.subarray(0, chance.below(bytes.length + 1));
    case 1:
      return bytes.map((byte) => (chance.happens(0.02) ? byte ^ (1 << chance.below(8)) : byte));
    case 2:
      return Buffer.concat([bytes, Buffer.from([0x0b])]);
    case 3:
      return Buffer.concat([bytes, Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f])]);
    case 4:
      return Buffer.concat([bytes, Buffer.alloc(11, 0xff)]);
    case 5:
      return chance.bytes(chance.below(64));
    default:
      return bytes;
  }
}
