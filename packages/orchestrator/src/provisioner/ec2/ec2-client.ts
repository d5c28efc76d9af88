import { EC2Client } from "@aws-sdk/client-ec2";

export interface Ec2ClientOptions {
  /** Undefined leaves it to the SDK: AWS_REGION, the profile, the machine. */
  readonly region: string | undefined;
  /** How long one try may take, after which its result is unknown. */
  readonly requestTimeoutMs?: number;
  /** Tries of one call; the SDK waits between them, longer each time and with jitter. */
  readonly maxAttempts?: number;
}

const CONNECTION_TIMEOUT_MS = 3000;
const REQUEST_TIMEOUT_MS = 20_000;
const MAX_ATTEMPTS = 4;

/**
 * The SDK's client with bounds on everything. Credentials and endpoint are the SDK's own business (instance role,
 * profile, AWS_ENDPOINT_URL_EC2): no secret passes through the configuration of Turnbox.
 */
export function createEc2Client(options: Ec2ClientOptions): EC2Client {
  return new EC2Client({
    ...(options.region === undefined ? {} : { region: options.region }),
    retryMode: "standard",
    maxAttempts: options.maxAttempts ?? MAX_ATTEMPTS,
    requestHandler: {
      connectionTimeout: CONNECTION_TIMEOUT_MS,
      requestTimeout: options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS,
      throwOnRequestTimeout: true,
    },
  });
}
