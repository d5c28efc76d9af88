import { type EC2Client, type Instance, RunInstancesCommand, type RunInstancesCommandInput } from "@aws-sdk/client-ec2";
import { type Clock, type Log, SandboxError } from "@turnbox/core";
import { backoffMs } from "./backoff.ts";
import { classify, codeOf, type Ec2Failure, sandboxErrorOf } from "./ec2-error.ts";
import type { Ec2Hardware } from "./ec2-options.ts";
import { describeOffer, type LaunchOffer, listOffers } from "./launch-offers.ts";
import { type MachineWish, runInstancesInput } from "./run-instances-input.ts";

export interface LaunchContext {
  readonly client: EC2Client;
  readonly hardware: Ec2Hardware;
  readonly clock: Clock;
  readonly logger: Log;
  readonly random: () => number;
  readonly patienceMs: number;
  readonly signal: AbortSignal;
  /** The machine of this id that EC2 shows, if it shows one. */
  readonly find: () => Promise<Instance | undefined>;
}

/** How far the launches of an instance have come. It outlives a launch that was given up. */
export interface LaunchProgress {
  offer: number;
  /** Whether a request for this offer may have had its effect: then it is asked for again, and no other is. */
  result: "none" | "unknown";
}

/** When there is no room anywhere, asking again at once does not help. */
const NO_ROOM_RETRY_MS = 30_000;

/** Makes the machine by the first offer that has room. No offer is left for the next while its result is unknown. */
export async function launchMachine(
  wish: MachineWish,
  progress: LaunchProgress,
  context: LaunchContext,
): Promise<Instance> {
  const offers = listOffers(context.hardware);
  const refusals: string[] = [];
  for (const [at, offer] of offers.entries()) {
    if (at < progress.offer) continue;
    progress.offer = at;
    const answer = await makeBy({ offer, wish, progress }, context);
    if (typeof answer !== "string") return answer;
    progress.result = "none";
    refusals.push(`${describeOffer(offer)}: ${answer}`);
    context.logger.warn({ instanceId: wish.instanceId, offer, answer }, "EC2 has no room for a machine");
  }
  progress.offer = 0;
  throw new SandboxError("FLEET_EXHAUSTED", `EC2 has no room for a machine (${refusals.join("; ")})`, {
    admitted: "no",
    retryAfterMs: NO_ROOM_RETRY_MS,
  });
}

interface Attempt {
  readonly offer: LaunchOffer;
  readonly wish: MachineWish;
  readonly progress: LaunchProgress;
}

/** The machine, or EC2's answer that there is no room. */
async function makeBy({ offer, wish, progress }: Attempt, context: LaunchContext): Promise<Instance | string> {
  const { clock, signal } = context;
  const input = runInstancesInput(wish, offer, context.hardware);
  const giveUpAtMs = clock.monotonicMs() + context.patienceMs;
  for (let failures = 1; ; failures += 1) {
    signal.throwIfAborted();
    const answer = await ask(input, context);
    if (answer.kind === "made") return answer.instance;
    const { error, kind } = answer;
    if (kind === "no_room") {
      // The request before this one may have taken the room.
      const found = progress.result === "unknown" ? await context.find() : undefined;
      return found ?? messageOf(error);
    }
    if (kind === "mismatch") return await findInstead(error, giveUpAtMs, context);
    if (kind === "unknown") progress.result = "unknown";
    const delayMs = backoffMs(failures, context.random);
    const isHopeless = kind !== "unknown" && kind !== "throttled";
    if (isHopeless || clock.monotonicMs() + delayMs >= giveUpAtMs) throw failed(error, progress);
    context.logger.warn({ instanceId: wish.instanceId, code: codeOf(error), delayMs }, "a launch is asked for again");
    await clock.sleep(delayMs, { signal });
  }
}

type Answer =
  | { readonly kind: "made"; readonly instance: Instance }
  | { readonly kind: Ec2Failure; readonly error: unknown };

async function ask(input: RunInstancesCommandInput, { client, signal }: LaunchContext): Promise<Answer> {
  try {
    const { Instances: [instance] = [] } = await client.send(new RunInstancesCommand(input), { abortSignal: signal });
    if (instance !== undefined) return { kind: "made", instance };
    return { kind: "unknown", error: new SandboxError("PROVIDER_UNAVAILABLE", "EC2's answer holds no machine") };
  } catch (error) {
    signal.throwIfAborted();
    return { kind: classify(error), error };
  }
}

function failed(error: unknown, progress: LaunchProgress): SandboxError {
  const told = sandboxErrorOf(error, "make a machine");
  if (progress.result === "none") return told;
  return new SandboxError("PROVIDER_UNAVAILABLE", told.message, { cause: error, admitted: "unknown" });
}

const messageOf = (error: unknown): string =>
  error instanceof Error ? `${codeOf(error)}: ${error.message}` : codeOf(error);

/**
 * The token was used for another configuration of the same machine, so that machine was asked for before and may be
 * there. It is taken as it is; if it does not show, nothing is made.
 */
async function findInstead(error: unknown, giveUpAtMs: number, context: LaunchContext): Promise<Instance> {
  const { clock, signal } = context;
  for (let tries = 1; ; tries += 1) {
    const found = await context.find();
    if (found !== undefined) return found;
    const delayMs = backoffMs(tries, context.random);
    if (clock.monotonicMs() + delayMs >= giveUpAtMs) throw sandboxErrorOf(error, "make a machine");
    await clock.sleep(delayMs, { signal });
  }
}
