import type { DescMethod } from "@bufbuild/protobuf";
import type { Aim } from "./aim.ts";
import { isEnveloped } from "./frame.ts";
import type { Form } from "./input.ts";

const ODD: readonly (readonly [string, string])[] = [
  ["connect-timeout-ms", "0"],
  ["connect-timeout-ms", "-1"],
  ["connect-timeout-ms", "1e9"],
  ["connect-timeout-ms", "99999999999999999999"],
  ["grpc-timeout", "0n"],
  ["grpc-timeout", "99999999H"],
  ["grpc-timeout", "1Q"],
  ["connect-protocol-version", "9"],
  ["content-encoding", "gzip"],
  ["content-encoding", "br"],
  ["connect-content-encoding", "gzip"],
  ["grpc-encoding", "gzip"],
  ["grpc-encoding", "snappy"],
  ["accept-encoding", "nothing"],
  ["x-request-id", "a".repeat(5000)],
  ["x-request-id", "\u00e9\u00ff"],
  ["content-type", "application/json; charset=utf-16"],
  ["content-type", "application/grpc-web+proto"],
  ["content-type", "text/plain"],
  ["turnbox-fleet-epoch", "0"],
  ["turnbox-fleet-epoch", "1e3"],
  ["turnbox-fleet-epoch", "99999999999999999999"],
  ["traceparent", "00-zz-zz-01"],
];

const P_ODD = 0.12;

export function makeHeaders(form: Form, method: DescMethod, { chance }: Aim): Readonly<Record<string, string>> {
  const headers: Record<string, string> = { "content-type": contentType(form, method) };
  if (form.protocol === "grpc") headers["te"] = "trailers";
  if (form.protocol === "connect") headers["connect-protocol-version"] = "1";
  // A command of the fleet's leader; the epochs are small, so that the test itself can always command.
  if (method.name === "SetAdmission" && chance.happens(0.8))
    headers["turnbox-fleet-epoch"] = chance.of(["1", "2", "3"]);
  const [name, value] = chance.among(ODD, ["te", "trailers"]);
  return chance.happens(P_ODD) ? { ...headers, [name]: value } : headers;
}

function contentType(form: Form, method: DescMethod): string {
  if (form.protocol === "grpc") return `application/grpc+${form.codec}`;
  return isEnveloped(method, form) ? `application/connect+${form.codec}` : `application/${form.codec}`;
}
