import type { ServiceImpl } from "@connectrpc/connect";
import { invalidArgument, parseEnum } from "@turnbox/core";
import { Admission, type HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import type { AdmissionState } from "../cordon/cordon.ts";
import { EPOCH_HEADER, parseEpoch } from "./fence-interceptor.ts";
import type { Host } from "./host.ts";

const STATES: ReadonlyMap<number, AdmissionState> = new Map([
  [Admission.OPEN, "open"],
  [Admission.CLOSED, "closed"],
]);

/** SetAdmission: a command, so it names its epoch. */
export function setAdmission({ cordon }: Host): ServiceImpl<typeof HostService>["setAdmission"] {
  return async (request, { requestHeader, signal }) => {
    const epoch = parseEpoch(requestHeader.get(EPOCH_HEADER));
    if (epoch === undefined) throw invalidArgument(EPOCH_HEADER, "is required");
    await cordon.set({ state: parseEnum("admission", request.admission, STATES), epoch }, { signal });
    return { admission: toWireAdmission(cordon.state) };
  };
}

export function toWireAdmission(state: AdmissionState): Admission {
  return state === "open" ? Admission.OPEN : Admission.CLOSED;
}
