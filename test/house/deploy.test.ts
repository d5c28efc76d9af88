import { execFile, spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { providePythonTools } from "@turnbox/core/testing";
import { renderUserData } from "../../packages/orchestrator/src/provisioner/ec2/user-data.ts";
import { REPO } from "../support/process.ts";

const exec = promisify(execFile);
const DEADLINE = { timeout: 20_000 };
const read = (file: string): string => readFileSync(join(REPO, "deploy", file), "utf8");

const tools = await providePythonTools();
const ANALYZE = "/usr/bin/systemd-analyze";

const { publicKey, privateKey } = generateKeyPairSync("ed25519");
const publicKeyPem = publicKey.export({ type: "spki", format: "pem" }).toString();
const FACTS = { instanceId: "i-1", fleetId: "h0123456789", publicKeyPem, hostPort: 9100 };

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "turnbox-deploy-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

interface CloudConfig {
  readonly write_files: readonly {
    readonly path: string;
    readonly permissions: string;
    readonly content: string;
    readonly encoding?: string;
  }[];
  readonly runcmd: readonly (readonly string[])[];
}

/** What cloud-init would read. */
async function parseYaml(python: string, text: string): Promise<CloudConfig> {
  const file = join(folder, "user-data");
  writeFileSync(file, text);
  const script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
  return JSON.parse((await exec(python, ["-c", script, file], DEADLINE)).stdout) as CloudConfig;
}

describe("the user data of a machine", () => {
  const rendered = renderUserData(read("aws/user-data.yaml"), FACTS);

  it("is small enough for EC2, begins as cloud-init wants it, and has no gap left", () => {
    expect(rendered.startsWith("#cloud-config\n")).toBe(true);
    expect(Buffer.byteLength(rendered)).toBeLessThan(16 * 1024);
    expect(rendered).not.toContain("@@");
  });

  it("holds no secret: of the fleet's keys the public one alone, and nothing that looks like a credential (D36)", () => {
    const decoded = rendered
      .replaceAll(/^ *#.*$/gm, "")
      .replaceAll(/[A-Za-z0-9+/=]{40,}/g, (text) => Buffer.from(text, "base64").toString());
    expect(decoded).toContain("BEGIN PUBLIC KEY");
    expect(decoded).not.toMatch(/PRIVATE KEY|PASSWORD|AKIA|ASIA|Bearer|(SECRET|TOKEN)\w*[=:]/i);
    const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    for (const told of [pem, `${publicKeyPem}${pem}`, "", "token"]) {
      expect(() => renderUserData(read("aws/user-data.yaml"), { ...FACTS, publicKeyPem: told })).toThrow(
        expect.objectContaining({ reason: "CONFIG_INVALID" }),
      );
    }
  });

  it.each(["@@HOST_PORT@@", "@@INSTANCE_ID@@"])("is refused without %s, and with an unknown name", (name) => {
    const template = read("aws/user-data.yaml");
    const invalid = expect.objectContaining({ reason: "CONFIG_INVALID" });
    expect(() => renderUserData(template.replaceAll(name, "x"), FACTS)).toThrow(invalid);
    expect(() => renderUserData(`${template}@@HOME_TOKEN@@`, FACTS)).toThrow(invalid);
  });

  (tools === undefined ? it.skip : it)("is a cloud-config whose files make the home of a host", async () => {
    const config = await parseYaml(tools!.python, rendered);
    expect(Object.keys(config).sort()).toEqual(["runcmd", "write_files"]);
    for (const file of config.write_files) {
      expect(file.path).toMatch(/^\//);
      expect(file.permissions).toMatch(/^0[0-7]{3}$/);
      expect([undefined, "b64"]).toContain(file.encoding);
    }
    const contentOf = (path: string): string => {
      const { content, encoding } = config.write_files.find((file) => file.path === path)!;
      return encoding === "b64" ? Buffer.from(content, "base64").toString() : content;
    };
    expect(JSON.parse(contentOf("/var/lib/turnbox/home.json"))).toEqual({ version: 1, id: FACTS.fleetId });
    expect(contentOf("/var/lib/turnbox/keys/signing-key.pub.pem")).toBe(publicKeyPem);
    const [[program]] = config.runcmd as readonly [readonly [string]];
    expect(config.write_files.find(({ path }) => path === program)?.permissions).toBe("0755");
    const names = contentOf("/etc/turnbox/sandbox-host.env").match(/^[A-Z_]+(?==)/gm) ?? [];
    const known =
      readFileSync(join(REPO, "packages/sandbox-host/src/config.ts"), "utf8") + read("systemd/run-sandbox-host");
    expect(names.length).toBeGreaterThan(3);
    for (const name of names) expect(known).toContain(name);
  });
});

describe("the scripts of a machine", () => {
  (tools === undefined ? it.skip : it)("pass shellcheck, those inside the user data too", async () => {
    const { write_files: files } = await parseYaml(tools!.python, renderUserData(read("aws/user-data.yaml"), FACTS));
    const scripts = [read("systemd/run-sandbox-host"), ...files.map(({ content }) => content)].filter((text) =>
      text.startsWith("#!"),
    );
    expect(scripts).toHaveLength(2);
    for (const [at, script] of scripts.entries()) {
      const file = join(folder, `script-${at}`);
      writeFileSync(file, script);
      await expect(exec(tools!.shellcheck, ["--severity=style", file], DEADLINE)).resolves.toMatchObject({
        stdout: "",
      });
    }
    const bad = join(folder, "bad");
    writeFileSync(bad, "#!/bin/sh\nrm -rf $1/*\n");
    await expect(exec(tools!.shellcheck, [bad], DEADLINE)).rejects.toMatchObject({ code: 1 });
  });

  it("run a host whose standard input does not end, under its id, on its data", async () => {
    const program = join(folder, "host.mjs");
    writeFileSync(
      program,
      `process.stdin.on("end", () => { console.log("ended"); process.exit(1); }).resume();
       process.on("SIGTERM", () => { console.log("asked"); process.exit(0); });
       const own = Object.keys(process.env).filter((name) => /^(TURNBOX|SANDBOX_HOST)_/.test(name));
       setTimeout(() => console.log(JSON.stringify({ args: process.argv.slice(2), own })), 100);`,
    );
    const child = spawn(join(REPO, "deploy/systemd/run-sandbox-host"), {
      stdio: ["ignore", "pipe", "inherit"],
      env: {
        PATH: process.env["PATH"],
        RUNTIME_DIRECTORY: folder,
        SANDBOX_HOST_INSTANCE: "i-1",
        SANDBOX_HOST_HOME: "/h",
        SANDBOX_HOST_NODE: process.execPath,
        SANDBOX_HOST_PROGRAM: program,
        TURNBOX_ADVERTISE_ADDR: "10.0.0.1",
      },
    });
    let told = "";
    const exited = new Promise((resolve) => child.once("close", resolve));
    child.stdout.on("data", (chunk: Buffer) => {
      told += chunk.toString();
      if (told.endsWith("}\n")) child.kill("SIGTERM");
    });
    expect(await exited).toBe(0);
    const [first = "", last] = told.split("\n");
    const args = ["serve", "--home", "/h", "--data-dir", "/h/hosts/i-1", "--instance", "i-1", "--port", "9100"];
    expect(JSON.parse(first)).toEqual({ args, own: ["TURNBOX_ADVERTISE_ADDR"] });
    expect(last).toBe("asked");
  });
});

describe("the unit of a sandbox-host", () => {
  const unit = read("systemd/turnbox-sandbox-host.service");
  const verify = async (text: string): Promise<string> => {
    const file = join(folder, "turnbox-sandbox-host.service");
    writeFileSync(file, text.replaceAll("/opt/turnbox/", `${REPO}/`));
    const { stdout, stderr } = await exec(ANALYZE, ["verify", file], DEADLINE).catch(
      (error: unknown) => error as { stdout: string; stderr: string },
    );
    return `${stdout}${stderr}`;
  };

  (existsSync(ANALYZE) ? it : it.skip)("passes systemd-analyze verify", async () => {
    expect(await verify(unit)).not.toMatch(/turnbox-sandbox-host/);
    expect(await verify(unit.replace("KillMode=process", "KillModus=process"))).toMatch(/KillModus/);
  });

  it("leaves sandboxes alone when it is restarted, and is always started again", () => {
    for (const line of ["KillMode=process", "Restart=always", "Delegate=yes", "OOMPolicy=continue"]) {
      expect(unit).toMatch(new RegExp(`^${line}$`, "m"));
    }
  });

  it("has no mount namespace of its own, in which what it mounts would be lost to the next start", () => {
    const settings = unit.match(/^[A-Z][A-Za-z]+(?==)/gm) ?? [];
    const own = ["ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateDevices", "ProtectControlGroups", "ProtectProc"];
    const more = [
      "ProtectKernelTunables",
      "ProtectKernelModules",
      "ProtectKernelLogs",
      "ReadWritePaths",
      "ProtectClock",
    ];
    expect(settings.filter((name) => [...own, ...more].includes(name))).toEqual([]);
  });
});

interface Statement {
  readonly Sid: string;
  readonly Effect: string;
  readonly Action: readonly string[];
  readonly Resource: string | readonly string[];
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

describe("the policy of the orchestrator", () => {
  const { Version: version, Statement: statements } = JSON.parse(read("aws/iam-policy.json")) as {
    readonly Version: string;
    readonly Statement: readonly Statement[];
  };

  it("allows each action that the adapter uses, and none besides", () => {
    const sources = join(REPO, "packages/orchestrator/src/provisioner/ec2");
    const code = readdirSync(sources)
      .filter((file) => !/\.(test|suite)\.ts$/.test(file))
      .map((file) => readFileSync(join(sources, file), "utf8"))
      .join("\n");
    const used = [...code.matchAll(/new ([A-Z][A-Za-z]+)Command\(/g)].map(([, name]) => `ec2:${name}`);
    // A launch with tags and with an instance profile asks for these as well.
    const implied = ["ec2:CreateTags", "iam:PassRole"];
    expect(used.length).toBeGreaterThan(5);
    const allowed = statements.flatMap((statement) => statement.Action);
    expect([...new Set(allowed)].sort()).toEqual([...new Set([...used, ...implied])].sort());
  });

  it("lets nothing be made, tagged, ended, stopped or started that is not of the fleet (D33)", () => {
    expect(version).toBe("2012-10-17");
    for (const { Sid: sid, Effect: effect, Action: actions, Resource: resources, Condition: condition } of statements) {
      expect(effect).toBe("Allow");
      expect(actions.filter((action) => action.includes("*"))).toEqual([]);
      const isReading = actions.every((action) => action.startsWith("ec2:Describe"));
      expect([sid, resources === "*"]).toEqual([sid, isReading]);
      const made = [resources].flat().filter((arn) => /:(instance|volume|spot-instances-request)\/\*$/.test(arn));
      if (made.length > 0) expect(JSON.stringify(condition)).toContain('/turnbox-fleet":"FLEET_ID"');
    }
  });

  it("lets no machine be made without tokens for its metadata and an encrypted disk (D35)", () => {
    const conditionOn = (kind: string): string =>
      JSON.stringify(
        statements.find(
          ({ Action: actions, Resource: resources }) =>
            actions.includes("ec2:RunInstances") && [resources].flat().some((arn) => arn.includes(`:${kind}/*`)),
        )?.Condition,
      );
    expect(conditionOn("instance")).toContain('"ec2:MetadataHttpTokens":"required"');
    expect(conditionOn("instance")).toContain('"ec2:MetadataHttpPutResponseHopLimit":"1"');
    expect(conditionOn("volume")).toContain('"ec2:Encrypted":"true"');
  });
});

describe("the launch template", () => {
  it("guards the metadata, encrypts the disk and leaves the subnet open (D35)", () => {
    expect(JSON.parse(read("aws/launch-template.json"))).toMatchObject({
      LaunchTemplateName: expect.stringMatching(/^[a-z-]{3,128}$/),
      LaunchTemplateData: {
        MetadataOptions: { HttpTokens: "required", HttpPutResponseHopLimit: 1 },
        BlockDeviceMappings: [{ Ebs: { Encrypted: true, DeleteOnTermination: true } }],
      },
    });
    expect(read("aws/launch-template.json")).not.toMatch(/NetworkInterfaces|SubnetId|UserData|KeyName/);
  });

  it("and all other files here are named in the README", () => {
    const named = read("aws/README.md");
    for (const file of readdirSync(join(REPO, "deploy"), { recursive: true, encoding: "utf8" })) {
      if (/\.[a-z]+$|run-sandbox-host/.test(file) && !file.endsWith("README.md"))
        expect(named).toContain(file.split("/").at(-1));
    }
  });
});
