import { ProviderEvent, providerStream } from '@antiphon/contracts/agent';
import { factsOfKind } from '@antiphon/config';
import type { ProviderConfig, ProviderKind } from '@antiphon/config';
import { AggregateStore } from '@antiphon/event-store';
import type { Decide, EventStore, LogMarks } from '@antiphon/event-store';
import { repeatEvery } from '@antiphon/kernel';
import type { Ids } from '@antiphon/kernel';
import { onLogNotification } from '@antiphon/messaging';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { eventForms, providersIdOf } from '@antiphon/agent-log';
import { providerDecider } from '@antiphon/providers-domain';
import type { ConnectedProvider, ProviderRegistry } from '@antiphon/providers-domain';

/** Interval between looks for changes whose notification was lost, ms. */
const POLL_MS = 1_000;
/** Maximum number of workspaces whose providers a process knows. */
const MAX_WORKSPACES = 1_000;

export interface ConnectedProvidersDeps {
  readonly store: Pick<EventStore, 'append' | 'readStream'>;
  readonly ids: Ids;
  readonly nats: NatsLink;
  readonly logger: Logger;
  /** Marks of the category of providers. */
  readonly marks: LogMarks;
}

/** The providers of a workspace, as of a version of their event stream. */
interface Known {
  readonly version: number;
  readonly registry: ProviderRegistry;
  /** The same object for each use, until the provider changes. */
  readonly configs: ReadonlyMap<string, ProviderConfig>;
}

const toConfig = ({ name, kind, baseUrl }: ConnectedProvider): ProviderConfig => ({
  name,
  kind: kind as ProviderKind,
  baseUrl,
  // A variable of the operator belongs to the configuration, never to a provider of a workspace.
  apiKeyEnv: null,
  storedKey: true,
  promptCache: true,
});

const isSame = (a: ConnectedProvider, b: ConnectedProvider | undefined): boolean =>
  a.kind === b?.kind && a.baseUrl === b.baseUrl;

/**
 * Providers that workspaces connected at run time: a cache of the folds of their event streams. A
 * change of another process arrives by notification, or at the next poll.
 */
export class ConnectedProviders {
  private readonly known = new Map<string, Known>();
  private readonly loading = new Map<string, Promise<void>>();
  private readonly streams: AggregateStore<ProviderRegistry, ProviderEvent>;
  private lastMark: number | null = null;

  constructor(private readonly deps: ConnectedProvidersDeps) {
    const { store, ids } = deps;
    this.streams = new AggregateStore({
      ...{ store, decider: providerDecider, ...eventForms(ProviderEvent, ids, null) },
      streamOf: (workspace) => providerStream(providersIdOf(workspace)),
    });
  }

  /** Reads the providers of a workspace, once until they change. */
  async open(workspace: string): Promise<void> {
    if (!this.known.has(workspace)) await this.read(workspace);
  }

  /** Reads the providers of a workspace from the log. Calls at the same time share one read. */
  async read(workspace: string): Promise<void> {
    const reading =
      this.loading.get(workspace) ?? this.load(workspace).finally(() => void this.loading.delete(workspace));
    this.loading.set(workspace, reading);
    await reading;
  }

  /** Returns a provider of a workspace that was opened; null if it has none with this name. */
  find(workspace: string, name: string): ProviderConfig | null {
    return this.known.get(workspace)?.configs.get(name) ?? null;
  }

  /** Lists the providers of a workspace, newest facts included, oldest first. */
  async list(workspace: string): Promise<readonly ConnectedProvider[]> {
    await this.read(workspace);
    return [...(this.known.get(workspace)?.registry.values() ?? [])];
  }

  /** Decides and commits a change; decides again after a conflict. */
  async commit(workspace: string, decide: Decide<ProviderRegistry, ProviderEvent>): Promise<void> {
    const { state, version } = await this.streams.commit(workspace, workspace, decide);
    this.keep(workspace, state, version);
  }

  /** Follows changes of other processes until the signal aborts. */
  async follow(signal: AbortSignal): Promise<void> {
    const { nats, marks, logger } = this.deps;
    let isFailing = false;
    const refresh = async (maxAgeMs: number): Promise<void> => {
      try {
        await this.refresh(maxAgeMs);
        isFailing = false;
      } catch (error) {
        // Once an outage, not at each poll.
        if (!isFailing) logger.warn({ err: error }, 'connected providers refresh failed');
        isFailing = true;
      }
    };
    const wake = (): void => void refresh(0);
    const unsubscribe = onLogNotification(nats, wake, { categories: ['provider'], debounceMs: 5 });
    // The reads of the projections serve the poll.
    await repeatEvery(() => refresh(POLL_MS), POLL_MS, signal);
    unsubscribe();
    await marks.close();
  }

  private async refresh(maxAgeMs: number): Promise<void> {
    if (this.known.size === 0) return;
    const mark = await this.deps.marks.readMark(maxAgeMs);
    if (mark === this.lastMark) return;
    for (const workspace of [...this.known.keys()]) await this.read(workspace);
    this.lastMark = mark;
  }

  private async load(workspace: string): Promise<void> {
    const { state, version } = await this.streams.read(workspace, workspace);
    this.keep(workspace, state, version);
  }

  /** Keeps what was read unless something newer is kept. */
  private keep(workspace: string, registry: ProviderRegistry, version: number): void {
    const before = this.known.get(workspace);
    if (before && before.version >= version) return;
    const configs = new Map<string, ProviderConfig>();
    for (const [name, provider] of registry) {
      // A kind of a newer version has no adapter here.
      if (factsOfKind(provider.kind) === null) continue;
      const kept = isSame(provider, before?.registry.get(name)) ? before?.configs.get(name) : undefined;
      configs.set(name, kept ?? toConfig(provider));
    }
    this.known.delete(workspace);
    this.known.set(workspace, { version, registry, configs });
    const [oldest] = this.known.keys();
    if (oldest !== undefined && this.known.size > MAX_WORKSPACES) this.known.delete(oldest);
  }
}
