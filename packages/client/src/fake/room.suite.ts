import { type FakeSandbox, newSandbox, routeSandbox } from "./fake-sandbox.ts";
import { createServices, newWorld, type World } from "./fake-services.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { createLibraryHarness, type LibraryHarness } from "./library-harness.suite.ts";

/** A sandbox in memory, its handle, and what can happen to the calls between them. */
export interface Room extends Disposable {
  readonly world: World;
  readonly inside: FakeSandbox;
  readonly harness: LibraryHarness;
  readonly sandbox: Sandbox;
}

export async function openRoom(): Promise<Room> {
  const world = newWorld();
  const inside = newSandbox();
  const services = createServices(world);
  const harness = createLibraryHarness({
    ...services,
    host: (router) => {
      services.host(router);
      routeSandbox(router, inside);
    },
  });
  const sandbox = await harness.turnbox.get("web");
  return { world, inside, harness, sandbox, [Symbol.dispose]: harness[Symbol.dispose] };
}
