import { ANY_TENANT, type Clock, createDeadline, type Log, SandboxError } from "@turnbox/core";
import { Jobs } from "../loop/jobs.ts";
import type { InstanceRegistry } from "../registry/instance-registry.ts";
import { formatVersion, type TemplateArchives, type TemplateVersion } from "./template-archives.ts";

export interface TemplateSyncOptions {
  readonly archives: TemplateArchives;
  readonly registry: InstanceRegistry;
  readonly clock: Clock;
  readonly logger: Log;
  /** Called when a host has got a template, or could not take it. */
  readonly onSettled: () => void;
  readonly shutdown: AbortSignal;
}

const IMPORT_TIMEOUT_MS = 600_000;
/** How long a host that could not take a template is left alone with it. */
const RETRY_MS = 60_000;
const HOSTS_AT_ONCE = 2;

/**
 * Brings the templates that were imported through this orchestrator to hosts that came later, from its archives. A version that
 * a host had and lost was removed on purpose: that host does not get it again, and its archive goes with the last host's.
 */
export class TemplateSync {
  readonly #options: TemplateSyncOptions;
  readonly #jobs = new Jobs(HOSTS_AT_ONCE);
  /** What each host was seen to have. */
  readonly #had = new Map<string, Set<string>>();
  /** When a host could not take a version, by both. */
  readonly #failedMs = new Map<string, number>();

  constructor(options: TemplateSyncOptions) {
    this.#options = options;
  }

  /** Looks at what each host has, as it said last, and begins to bring what it lacks. */
  async look(): Promise<void> {
    const { archives, registry } = this.#options;
    await archives.load();
    if (archives.list().length === 0) return;
    this.#noteWhatIsThere();
    for (const version of archives.list()) if (this.#isRemoved(version)) await archives.remove(version);
    for (const instanceId of registry.connectedIds()) {
      if (this.#missing(instanceId).length > 0) this.#jobs.start(instanceId, () => this.#bringTo(instanceId));
    }
  }

  /** Whether a host that lacks the template `name` or `name@version` is going to get it. */
  isComing(instanceId: string, template: string): boolean {
    return this.#missing(instanceId).some(
      (version) => template === version.name || template === formatVersion(version),
    );
  }

  async idle(): Promise<void> {
    await this.#jobs.idle();
  }

  #noteWhatIsThere(): void {
    const { registry } = this.#options;
    const known = new Set(registry.allIds());
    for (const instanceId of this.#had.keys()) if (!known.has(instanceId)) this.#had.delete(instanceId);
    for (const instanceId of known) {
      const had = this.#had.get(instanceId) ?? new Set();
      for (const version of this.#there(instanceId) ?? []) had.add(version);
      this.#had.set(instanceId, had);
    }
  }

  /** True if hosts had it, and each of them says that it has it no more. */
  #isRemoved(version: TemplateVersion): boolean {
    const text = formatVersion(version);
    const owners = [...this.#had].filter(([, had]) => had.has(text)).map(([instanceId]) => instanceId);
    return owners.length > 0 && owners.every((instanceId) => this.#there(instanceId)?.has(text) === false);
  }

  /** The versions that a host says it has; undefined if it does not answer. */
  #there(instanceId: string): ReadonlySet<string> | undefined {
    const report = this.#options.registry.report(instanceId);
    return report === undefined ? undefined : new Set(report.templates.map(formatVersion));
  }

  /** What a host is to get, oldest first. */
  #missing(instanceId: string): readonly TemplateVersion[] {
    const { archives, clock } = this.#options;
    const there = this.#there(instanceId);
    if (there === undefined) return [];
    const kept = archives.list();
    return kept.filter((version, index) => {
      const text = formatVersion(version);
      if (there.has(text) || this.#had.get(instanceId)?.has(text) === true) return false;
      const failedMs = this.#failedMs.get(failureOf(instanceId, version));
      if (failedMs !== undefined && clock.monotonicMs() - failedMs < RETRY_MS) return false;
      // Imported behind a later one, it would be the latest of its name there.
      return !kept.slice(index + 1).some((later) => later.name === version.name && there.has(formatVersion(later)));
    });
  }

  async #bringTo(instanceId: string): Promise<void> {
    const { registry, clock, logger, onSettled, shutdown } = this.#options;
    for (const version of this.#missing(instanceId)) {
      using deadline = createDeadline({ clock, ms: IMPORT_TIMEOUT_MS, signal: shutdown });
      try {
        await this.#import(instanceId, version, deadline.signal);
        await registry.ask(instanceId, deadline);
        logger.info({ instanceId, template: formatVersion(version) }, "a host got a template that was imported before");
      } catch (error) {
        if (shutdown.aborted) return;
        this.#failedMs.set(failureOf(instanceId, version), clock.monotonicMs());
        const err = SandboxError.from(error);
        logger.warn({ err, instanceId, template: formatVersion(version) }, "a host did not get a template");
      }
      onSettled();
    }
  }

  async #import(instanceId: string, version: TemplateVersion, signal: AbortSignal): Promise<void> {
    const { registry, archives } = this.#options;
    const request = { idempotencyKey: "", name: version.name, archive: archives.read(version) };
    const { template } = await registry.connection(instanceId).importTemplate(request, { signal, tenant: ANY_TENANT });
    if (template.digest === version.digest) return;
    throw new SandboxError("INTERNAL", `the archive of ${formatVersion(version)} makes ${formatVersion(template)}`);
  }
}

const failureOf = (instanceId: string, version: TemplateVersion): string => `${instanceId}/${formatVersion(version)}`;
