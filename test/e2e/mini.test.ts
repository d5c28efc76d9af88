import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { nextLine, startNode } from "../../packages/sandbox-host/src/network/world.suite.ts";
import { APPLET_CHECKS, type AppletCheck } from "../support/applet-checks.ts";
import { startHost, type TestHost } from "../support/host.ts";
import { createSession, script } from "../support/host-calls.ts";
import { makeOutside, NAMES_PORT, type Outside } from "../support/outside.ts";
import { IS_FULL } from "../support/random.ts";

const NAMES = "192.31.196.151";
const SERVER = "192.31.196.152";
const WEB_PORT = 8090;
const PAGE = "found by its name";
const WEB = `require("node:http").createServer((_, response) => response.end(${JSON.stringify(PAGE)}))
  .listen(${String(WEB_PORT)}, "0.0.0.0", () => console.log("ready"));
process.stdin.resume().on("end", () => process.exit(0));`;
const NAME = "files.example.org";

let outside: Outside;
let host: TestHost;
beforeAll(async () => {
  outside = await makeOutside([NAMES, SERVER]);
  host = await startHost({ env: { TURNBOX_NAMESERVERS: `${NAMES}:${String(NAMES_PORT)}` } });
  await createSession(host, "alone");
  await createSession(host, "networked", { networkPolicy: { allowOutbound: true, required: true } });
}, 240_000);
afterAll(async () => {
  await host[Symbol.asyncDispose]();
  await outside[Symbol.asyncDispose]();
}, 120_000);

/** Exit codes of programs that died of a fault of their own: SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS. */
const FAULTS = [132, 134, 135, 136, 139, 159];
/** Programs that end the sandbox, or all that runs in it, when they get what they ask for. */
const DRASTIC = ["halt", "init", "kill", "killall", "linuxrc", "poweroff", "reboot", "run-init", "switch_root"];
const LETTERS = "a b c d e f g h i j k l m n o p q r s t u v w x y z";
const OPTIONS = IS_FULL ? `${LETTERS} ${LETTERS.toUpperCase()}` : "T";

/** Prints `applet exit-code` for each program of the template that dies of a fault, and how many it has tried. */
const RUN_ALL = `
exec 2>/dev/null; mkdir -p /tmp/all; cd /tmp/all; tried=0
try() { timeout -s KILL 1 "$@" </dev/null >/dev/null 2>&1; s=$?; case $s in ${FAULTS.join("|")}) echo "$* $s";; esac; }
for link in /bin/*; do
  [ "$(readlink $link)" = busybox ] || continue
  tried=$((tried+1)); try $link --help
  case \${link#/bin/} in ${DRASTIC.join("|")}) continue;; esac
  try $link; for option in ${OPTIONS}; do try $link -$option 1 2 3; done
done
echo "tried $tried"`;

/** Runs the checks in one call; answers with those that printed something else. */
async function failing(sessionId: string, checks: readonly AppletCheck[]): Promise<readonly unknown[]> {
  const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
  const one = ([, check]: AppletCheck): string =>
    `echo '@@'; (mkdir $$.d; cd $$.d; timeout -s KILL 60 bash -c ${quoted(check)} 2>&1); rm -rf $$.d`;
  const output = await script(host, sessionId, ["cd /tmp", ...checks.map(one), "true"].join("\n"));
  const printed = output.split("@@\n").slice(1);
  expect(printed).toHaveLength(checks.length);
  return checks.flatMap(([applet, , wanted], at) => {
    const seen = (printed[at] ?? "").replace(/\n$/, "");
    return seen === wanted ? [] : [{ applet, seen, wanted }];
  });
}

describe("the programs of template mini", () => {
  it("are run each, and none dies of a fault of its own", async () => {
    const offered = (await script(host, "alone", "busybox --list | wc -l")).trim();
    const lines = (await script(host, "alone", RUN_ALL)).trim().split("\n");
    // The link of busybox to itself is the program.
    expect(lines).toEqual([`tried ${Number(offered) - 1}`]);
  }, 1_200_000);

  it(`do what they are for, ${APPLET_CHECKS.length} of them`, async () => {
    expect(new Set(APPLET_CHECKS.map(([applet]) => applet)).size).toBe(APPLET_CHECKS.length);
    expect(await failing("alone", APPLET_CHECKS)).toEqual([]);
  }, 240_000);

  it("look names up in a sandbox with a network", async () => {
    const web = startNode(outside.netns, WEB);
    await nextLine(web);
    outside.answer(NAME, [SERVER]);
    const url = `http://${NAME}:${String(WEB_PORT)}/`;
    const lost = "wget: bad address 'lost.example.org'";
    const checks: readonly AppletCheck[] = [
      ["wget", `wget -qO- ${url}`, PAGE],
      ["wget -T", `wget -T 20 -t 2 -qO- ${url}; wget -T20 -qO f ${url}; cat f`, PAGE + PAGE],
      ["wget by sh", `sh -c 'wget -T 20 -qO- ${url}'; timeout 20 wget -T 20 -qO- ${url}`, PAGE + PAGE],
      ["wget of a name that is not there", "wget -T 20 http://lost.example.org/; echo $?", `${lost}\n1`],
      ["nc", `nc -w 5 ${NAME} 80 < /dev/null`, "hello"],
      ["nslookup", `nslookup ${NAME} | grep -c ${SERVER}`, "1"],
      ["telnet", `until [ -s o ]; do sleep 0.1; done | telnet ${NAME} 80 > o; grep -o hello o`, "hello"],
      ["ftpget", `timeout 5 ftpget ${NAME} a a >/dev/null 2>&1; echo $?`, "1"],
      ["hostname -f", `hostname -f >/dev/null 2>&1; [ $? -lt 2 ] && echo fine`, "fine"],
      ["ping", `ping -c 1 -W 1 ${NAME} >/dev/null 2>&1; [ $? -lt 2 ] && echo fine`, "fine"],
    ];
    expect(await failing("networked", checks)).toEqual([]);
    const ended = once(web, "exit");
    web.stdin?.end();
    await ended;
  }, 240_000);

  it("say that there is no such name in a sandbox without a network", async () => {
    const checks: readonly AppletCheck[] = [
      ["wget", `wget -T 9 http://${NAME}/; echo $?`, `wget: bad address '${NAME}'\n1`],
      ["nc", `nc -w 5 ${NAME} 80 < /dev/null; echo $?`, `nc: bad address '${NAME}'\n1`],
    ];
    expect(await failing("alone", checks)).toEqual([]);
  }, 120_000);
});
