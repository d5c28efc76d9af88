import { describe, expect, it } from "@jest/globals";
import { localEnvironment, remoteEnvironment } from "./agent-environment.ts";
import { resolveProfile } from "./profile/resolve-profile.ts";

const sandbox = resolveProfile({
  backend: "turnbox",
  env: { EDITOR: "vi", AGH_MODE: "profile", DAYTONA_API_KEY: "hush" },
  secretEnv: { MODEL_KEY: "given on purpose", E2B_API_KEY: "hush" },
});
const agentEnv = {
  AGH_MODE: "agent",
  TURNBOX_AGENT_NAME: "coder",
  TURNBOX_TOKEN: "hush",
  aws_secret_access_key: "hush",
  ANTHROPIC_API_KEY: "hush",
  PATH: "/home/me/bin",
};

describe("the variables of an agent", () => {
  it("leave this machine by prefix or by the profile only, the profile winning (D19)", () => {
    const { env, secretEnv } = remoteEnvironment({ agentEnv, sandbox });
    expect(env).toEqual({ AGH_MODE: "profile", TURNBOX_AGENT_NAME: "coder", EDITOR: "vi" });
    expect(Object.keys(secretEnv)).toEqual(["MODEL_KEY"]);
  });

  it("are never the keys to sandbox providers, not even on this machine, and a profile that names them gets a warning", () => {
    const { env, warnings } = localEnvironment({ agentEnv, sandbox });
    expect(env).toEqual({ ...env, ANTHROPIC_API_KEY: "hush", PATH: "/home/me/bin", AGH_MODE: "profile" });
    expect(Object.keys(env)).not.toEqual(expect.arrayContaining(["TURNBOX_TOKEN"]));
    expect(Object.keys(env)).not.toContain("aws_secret_access_key");
    expect(warnings).toEqual([expect.stringContaining("DAYTONA_API_KEY"), expect.stringContaining("E2B_API_KEY")]);
    expect(warnings.join()).not.toContain("hush");
  });
});
