import { SandboxError } from "@turnbox/core";

/** Far more pages than a fleet has machines for; beyond it EC2's answers go round in circles. */
const MAX_PAGES = 1000;

/** All items of all pages, in order. An answer that is cut short is never taken for the whole. */
export async function allPages<P extends { readonly NextToken?: string | undefined }, T>(
  ask: (nextToken: string | undefined) => Promise<P>,
  itemsOf: (page: P) => readonly T[],
): Promise<readonly T[]> {
  const items: T[] = [];
  let nextToken: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const answer = await ask(nextToken);
    items.push(...itemsOf(answer));
    const following = answer.NextToken;
    if (following === undefined || following === "") return items;
    if (following === nextToken) break;
    nextToken = following;
  }
  throw new SandboxError("PROVIDER_UNAVAILABLE", "the pages of EC2's answer do not end");
}
