import { CAPABILITIES, type ProcessRequest } from "../container/oci-spec.ts";

/** The bits of the kernel's table for the capabilities that processes inside have. */
const CAPABILITY_BITS: Readonly<Record<(typeof CAPABILITIES)[number], number>> = {
  CAP_CHOWN: 0,
  CAP_DAC_OVERRIDE: 1,
  CAP_FOWNER: 3,
  CAP_FSETID: 4,
  CAP_KILL: 5,
  CAP_SETGID: 6,
  CAP_SETUID: 7,
  CAP_SETPCAP: 8,
  CAP_NET_BIND_SERVICE: 10,
};

export const CAPABILITY_MASK = CAPABILITIES.reduce((mask, name) => mask | (1 << CAPABILITY_BITS[name]), 0);

/** What `runsc exec` says to the sentry for the same process. Its three files come with the message. */
export function executeRequest(id: string, { argv, env, cwd }: ProcessRequest): string {
  return JSON.stringify({
    method: "containerManager.ExecuteAsync",
    arg: {
      filename: "",
      argv,
      envv: Object.entries(env).map(([name, value]) => `${name}=${value}`),
      MountNamespace: null,
      wd: cwd,
      KUID: 0,
      KGID: 0,
      ExtraKGIDs: [],
      Capabilities: {
        PermittedCaps: CAPABILITY_MASK,
        InheritableCaps: 0,
        EffectiveCaps: CAPABILITY_MASK,
        BoundingCaps: CAPABILITY_MASK,
        AmbientCaps: 0,
      },
      StdioIsPty: false,
      GuestFDs: [0, 1, 2],
      ContainerID: id,
      PIDNamespace: null,
      Limits: null,
    },
  });
}
