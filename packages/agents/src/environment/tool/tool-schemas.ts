import { z } from "zod";

const path = z.string().min(1).max(4096);
const pattern = z.string().min(1).max(4096);
const whole = (minimum: number, maximum: number) => z.int().min(minimum).max(maximum);

export const MAX_LINES = 2000;
const MAX_CONTENT_CHARACTERS = 4 * 1024 * 1024;
const MAX_TIMEOUT_MS = 3_600_000;

/**
 * The parameters of the tools that environments without a host's catalog have: those of the catalog, apart from
 * `background`, which needs an owner of the process. Others are refused.
 */
export const TOOL_SCHEMAS = {
  bash: z.strictObject({
    cmd: z.string().min(1).max(100_000),
    timeout_ms: whole(1, MAX_TIMEOUT_MS).optional(),
    cwd: path.default("."),
    env: z.record(z.string(), z.string()).default({}),
  }),
  read_file: z.strictObject({
    path,
    offset: whole(1, 2_000_000_000).default(1),
    limit: whole(1, MAX_LINES).default(MAX_LINES),
  }),
  write_file: z.strictObject({
    path,
    content: z.string().max(MAX_CONTENT_CHARACTERS),
    create_dirs: z.boolean().default(false),
  }),
  edit_file: z.strictObject({
    path,
    old_string: z.string().min(1),
    new_string: z.string(),
    replace_all: z.boolean().default(false),
  }),
  list_dir: z.strictObject({ path: path.default("."), depth: whole(1, 20).default(1) }),
  grep: z.strictObject({
    pattern,
    path: path.default("."),
    include: pattern.optional(),
    exclude: pattern.optional(),
    literal: z.boolean().default(false),
    context_lines: whole(0, 20).default(0),
    max_results: whole(1, 1000).default(100),
  }),
  glob: z.strictObject({ pattern, path: path.default("."), max_results: whole(1, MAX_LINES).default(200) }),
} as const;

export type ToolName = keyof typeof TOOL_SCHEMAS;
export type ToolParams<Name extends ToolName> = z.output<(typeof TOOL_SCHEMAS)[Name]>;

/** Of a command that says nothing about it. */
export const DEFAULT_BASH_TIMEOUT_MS = 120_000;
/** Of the file tools. */
export const DEFAULT_FILE_TIMEOUT_MS = 30_000;
/** Of each stream, in an answer. Progress has all of it. */
export const KEEP_BYTES = 1024 * 1024;
