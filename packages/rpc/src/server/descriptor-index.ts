import type { DescExtension, DescFile, DescMessage } from "@bufbuild/protobuf";
import { toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";

/** What reflection can be asked about a set of files and all they import. Lookups that find nothing answer undefined. */
export interface DescriptorIndex {
  /** Full names of all services of the given files. */
  readonly services: readonly string[];
  /** Serialized descriptors: the file first, then everything it imports. */
  fileByName(name: string): readonly Uint8Array[] | undefined;
  fileBySymbol(symbol: string): readonly Uint8Array[] | undefined;
  fileByExtension(typeName: string, number: number): readonly Uint8Array[] | undefined;
  /** Undefined if there is no such message type. */
  extensionNumbers(typeName: string): readonly number[] | undefined;
}

export function createDescriptorIndex(roots: readonly DescFile[]): DescriptorIndex {
  const files = new Map<string, DescFile>();
  for (const root of roots) for (const file of withImports(root)) files.set(file.proto.name, file);

  const symbols = new Map<string, DescFile>();
  const extensions = new Map<string, Map<number, DescFile>>();
  for (const file of files.values()) {
    for (const symbol of symbolsOf(file)) symbols.set(symbol, file);
    for (const extension of extensionsOf(file)) {
      const ofType = extensions.get(extension.extendee.typeName) ?? new Map<number, DescFile>();
      extensions.set(extension.extendee.typeName, ofType.set(extension.number, file));
    }
  }

  const serialized = (file: DescFile | undefined): readonly Uint8Array[] | undefined =>
    file === undefined ? undefined : withImports(file).map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto));

  return {
    services: [...new Set(roots.flatMap((file) => file.services.map((service) => service.typeName)))].sort(),
    fileByName: (name) => serialized(files.get(name)),
    fileBySymbol: (symbol) => serialized(symbols.get(symbol.replace(/^\./, ""))),
    fileByExtension: (typeName, number) => serialized(extensions.get(typeName)?.get(number)),
    extensionNumbers: (typeName) =>
      symbols.has(typeName) ? [...(extensions.get(typeName)?.keys() ?? [])].sort((a, b) => a - b) : undefined,
  };
}

/** The file and all it imports, each once. */
function withImports(root: DescFile): readonly DescFile[] {
  const found = new Map<string, DescFile>();
  const visit = (file: DescFile): void => {
    if (found.has(file.proto.name)) return;
    found.set(file.proto.name, file);
    for (const dependency of file.dependencies) visit(dependency);
  };
  visit(root);
  return [...found.values()];
}

function symbolsOf(file: DescFile): readonly string[] {
  return [
    ...file.services.flatMap((service) => [
      service.typeName,
      ...service.methods.map((method) => `${service.typeName}.${method.name}`),
    ]),
    ...file.enums.flatMap((descEnum) => enumSymbols(descEnum)),
    ...file.extensions.map((extension) => extension.typeName),
    ...file.messages.flatMap(messageSymbols),
  ];
}

function messageSymbols(message: DescMessage): readonly string[] {
  return [
    message.typeName,
    ...message.fields.map((field) => `${message.typeName}.${field.name}`),
    ...message.oneofs.map((oneof) => `${message.typeName}.${oneof.name}`),
    ...message.nestedEnums.flatMap((descEnum) => enumSymbols(descEnum)),
    ...message.nestedExtensions.map((extension) => extension.typeName),
    ...message.nestedMessages.flatMap(messageSymbols),
  ];
}

/** The values of an enum live beside it, not in it. */
function enumSymbols({
  typeName,
  values,
}: {
  readonly typeName: string;
  readonly values: readonly { readonly name: string }[];
}): string[] {
  const scope = typeName.slice(0, typeName.lastIndexOf(".") + 1);
  return [typeName, ...values.map((value) => `${scope}${value.name}`)];
}

function extensionsOf(file: DescFile): readonly DescExtension[] {
  const ofMessage = (message: DescMessage): DescExtension[] => [
    ...message.nestedExtensions,
    ...message.nestedMessages.flatMap(ofMessage),
  ];
  return [...file.extensions, ...file.messages.flatMap(ofMessage)];
}
