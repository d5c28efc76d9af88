import { type Backoff, type Clock, type Log, type Secret, SandboxError } from "@turnbox/core";

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: Secret;
  readonly sessionToken?: Secret;
}

/** A bucket of a server that speaks S3. */
export interface S3Options {
  readonly bucket: string;
  /** What stands in front of all keys: empty, or it ends with a slash. Default is empty. */
  readonly prefix?: string;
  /** The server; default is Amazon's for the region. */
  readonly endpoint?: string;
  /** Default is what the environment, the profile or the machine says; with an endpoint, `us-east-1`. */
  readonly region?: string;
  /** Whether the bucket is a part of the path and not of the host's name. Default: if there is an endpoint. */
  readonly pathStyle?: boolean;
  /** Default is the standard chain: environment, profile, role of the machine. */
  readonly credentials?: S3Credentials;
  /** To whom contents may go without encryption on the way. Default is `loopback`. */
  readonly plainHttp?: "loopback" | "anywhere";
  readonly clock: Clock;
  /** Chance of the pauses between two tries. */
  readonly random: () => number;
  readonly logger: Log;
  readonly limits?: Partial<S3Limits>;
}

export interface S3Limits {
  /** What an object is put in, if it has more: at least 5 MiB, by S3's own rule. Every put holds a part more than it sends. */
  readonly partBytes: number;
  /** Parts of one put that are under way. */
  readonly parallelParts: number;
  /** How long one try may take, besides a second for each MiB that it sends. */
  readonly requestTimeoutMs: number;
  /** How long a body may stand still while it is read. */
  readonly stallMs: number;
  /** How long after the first try of a request another one may begin. */
  readonly patienceMs: number;
  readonly pauseMs: Backoff;
}

const MIN_PART_BYTES = 5 * 1024 * 1024;

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const PREFIX = /^([A-Za-z0-9._-]+\/)*$/;
const MAX_PREFIX_LENGTH = 256;

/** Throws `CONFIG_INVALID`, which names the option and its rule. */
export function checkS3Options({
  bucket,
  prefix = "",
  endpoint,
  plainHttp = "loopback",
  limits = {},
}: S3Options): void {
  if (!BUCKET.test(bucket)) throw invalid("bucket", "must be 3 to 63 lower-case letters, digits, dots and hyphens");
  if (!PREFIX.test(prefix) || prefix.length > MAX_PREFIX_LENGTH) {
    throw invalid(
      "prefix",
      "must be segments of letters, digits, dots, underscores and hyphens, each ended by a slash",
    );
  }
  if (endpoint !== undefined) checkEndpoint(endpoint, plainHttp);
  if (limits.partBytes !== undefined && limits.partBytes < MIN_PART_BYTES) {
    throw invalid("partBytes", `must be at least ${MIN_PART_BYTES}`);
  }
}

function checkEndpoint(endpoint: string, plainHttp: "loopback" | "anywhere"): void {
  const url = URL.parse(endpoint);
  if (url === null || !["http:", "https:"].includes(url.protocol))
    throw invalid("endpoint", "must be an http or https URL");
  if (url.username !== "" || url.password !== "") {
    throw invalid("endpoint", "must not hold credentials: they would be seen wherever the address is");
  }
  if (url.search !== "" || url.hash !== "") throw invalid("endpoint", "must have no query and no fragment");
  if (url.protocol === "http:" && plainHttp === "loopback" && !LOOPBACK.test(url.hostname)) {
    throw invalid("endpoint", "must be https: unless it is of this machine, or plainHttp says `anywhere`");
  }
}

const invalid = (option: string, rule: string): SandboxError =>
  new SandboxError("CONFIG_INVALID", `object store: ${option} ${rule}`, { metadata: { field: option, rule } });
