export interface VariableRow {
  readonly name: string;
  readonly meaning: string;
}

/** What the command line reads from its environment; the server's own settings are in docs/OPERATIONS.md. */
export const ENVIRONMENT_VARIABLES: readonly VariableRow[] = [
  { name: "TURNBOX_URL", meaning: "the server's address, where --url is not given" },
  { name: "TURNBOX_TOKEN", meaning: "the server's token, where neither --token nor --token-file is given" },
  { name: "TURNBOX_TOKEN_FILE", meaning: "a file that holds the token, where TURNBOX_TOKEN is not set either" },
  { name: "TURNBOX_HOME", meaning: "the home of the server on this machine, with its token (default: ~/.turnbox)" },
  { name: "TURNBOX_PORT", meaning: "the port of the server on this machine: for `up`, and where no address is given" },
  { name: "TURNBOX_MCP_TOKEN", meaning: "for `mcp --http`: the token that its clients show" },
  { name: "NO_COLOR", meaning: "any value but the empty one: no colours" },
  { name: "FORCE_COLOR", meaning: "colours also where the output is no terminal; 0 or false: none at all" },
  { name: "TERM", meaning: "`dumb`: no colours; `shell` passes it on" },
  { name: "LC_ALL, LC_CTYPE, LANG", meaning: "the first that is set: whether a terminal shows more than ASCII" },
  { name: "OTEL_EXPORTER_OTLP_ENDPOINT", meaning: "where traces of the calls go (default: nowhere)" },
];
