/** A JSON schema of an object: what a model gets, and what parameters are checked against. */
export interface ToolSchema {
  readonly type: "object";
  readonly properties: Readonly<Record<string, ParameterSchema>>;
  readonly required: readonly string[];
  readonly additionalProperties: false;
}

export type ParameterSchema = TextSchema | NumberSchema | FlagSchema | ListSchema | MapSchema;

export interface TextSchema {
  readonly type: "string";
  readonly description: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  /** A regular expression for the whole text. */
  readonly pattern?: string;
  readonly default?: string;
}

export interface NumberSchema {
  readonly type: "integer";
  readonly description: string;
  readonly minimum: number;
  readonly maximum: number;
  readonly default?: number;
}

export interface FlagSchema {
  readonly type: "boolean";
  readonly description: string;
  readonly default?: boolean;
}

export interface ListSchema {
  readonly type: "array";
  readonly description: string;
  readonly items: { readonly type: "string"; readonly minLength: number; readonly maxLength: number };
  readonly minItems: number;
  readonly maxItems: number;
}

export interface MapSchema {
  readonly type: "object";
  readonly description: string;
  readonly additionalProperties: { readonly type: "string" };
}

export interface Tool {
  readonly name: string;
  readonly aliases: readonly string[];
  /** 1: done in a file worker; 2: runs code, in the sandbox. */
  readonly tier: 1 | 2;
  /** Tools that only read are not in the ledger. */
  readonly effect: "reads" | "writes";
  readonly description: string;
  readonly schema: ToolSchema;
}

export function objectOf<Properties extends ToolSchema["properties"]>(
  properties: Properties,
  required: readonly (keyof Properties & string)[],
): ToolSchema {
  return { type: "object", properties, required, additionalProperties: false };
}

export const MAX_PATH_LENGTH = 4096;

export function pathSchema(description: string): TextSchema {
  return { type: "string", description, minLength: 1, maxLength: MAX_PATH_LENGTH };
}
