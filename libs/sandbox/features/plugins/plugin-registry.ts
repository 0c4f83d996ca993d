import { upcast } from '@antiphon/contracts/events';
import { PLUGINS_STREAM, PluginEvent } from '@antiphon/contracts/sandbox';
import { inTransaction, inWorkspace } from '@antiphon/database';
import { AggregateStore } from '@antiphon/event-store';
import type { EventStore, EventStorePg, NewEvent, StreamAppend } from '@antiphon/event-store';
import { bug, createBoundedMap, isoTime } from '@antiphon/kernel';
import type { Clock, Ids, JsonObject } from '@antiphon/kernel';
import { contextFrom, currentContext } from '@antiphon/observability';
import { currentVersion, pluginsDecider } from '@antiphon/sandbox-domain';
import type { PluginCommand, WorkspacePlugins } from '@antiphon/sandbox-domain';
import type pg from 'pg';

const SERVICE = 'sandbox';
/** Maximum number of workspaces whose plug-ins a process keeps. */
const MAX_WORKSPACES = 1_000;

export interface PluginRegistryDeps {
  readonly pool: pg.Pool;
  readonly store: EventStore & EventStorePg;
  readonly ids: Ids;
  readonly clock: Clock;
}

type Without<T, K extends string> = T extends unknown ? Omit<T, K> : never;

/** A module to store with the fact about it. */
interface NewModule {
  readonly digest: string;
  readonly bytes: Uint8Array;
}

const PUT_MODULE = `insert into plugin_modules (workspace, digest, bytes) values ($1, $2, $3)
  on conflict (workspace, digest) do nothing`;
const DROP_MODULES = 'delete from plugin_modules where workspace = $1 and not (digest = any ($2))';
const DROP_VALUES = 'delete from plugin_values where workspace = $1 and plugin = $2';
const GET_MODULE = 'select bytes from plugin_modules where workspace = $1 and digest = $2';

/** Plug-ins of the workspaces: folds of their event streams, and the bytes of their modules. */
export class PluginRegistry {
  readonly #deps: PluginRegistryDeps;
  readonly #streams: AggregateStore<WorkspacePlugins, PluginEvent>;
  readonly #readAt = createBoundedMap<number>(MAX_WORKSPACES);

  constructor(deps: PluginRegistryDeps) {
    this.#deps = deps;
    this.#streams = new AggregateStore({
      ...{ store: deps.store, decider: pluginsDecider, streamOf: () => PLUGINS_STREAM },
      parse: (recorded) => PluginEvent.safeParse(upcast(recorded)).data ?? null,
      toNewEvent: (event) => this.#newEvent(event),
      cache: { maxStreams: MAX_WORKSPACES },
    });
  }

  /** Reads the plug-ins of a workspace, with the newest facts. */
  async read(workspace: string): Promise<WorkspacePlugins> {
    const { state } = await this.#streams.read(workspace, PLUGINS_STREAM);
    this.#readAt.put(workspace, this.#deps.clock.now());
    return state;
  }

  /** Returns the plug-ins of a workspace as of at most `maxAgeMs` ago. */
  async recent(workspace: string, maxAgeMs: number): Promise<WorkspacePlugins> {
    const age = this.#deps.clock.now() - (this.#readAt.get(workspace) ?? -Infinity);
    const kept = age < maxAgeMs ? this.#streams.kept(workspace, PLUGINS_STREAM) : null;
    return kept ?? this.read(workspace);
  }

  /** Decides and commits a change, with the bytes of a new module. */
  async commit(
    workspace: string,
    command: Without<PluginCommand, 'now'>,
    module?: NewModule,
  ): Promise<{ readonly state: WorkspacePlugins; readonly isChanged: boolean }> {
    const now = isoTime(this.#deps.clock);
    const { state, isAppended } = await this.#streams.commit(workspace, PLUGINS_STREAM, (folded) => {
      const events = pluginsDecider.decide({ ...command, now } as PluginCommand, folded.state);
      const after = events.reduce(pluginsDecider.evolve, folded.state);
      const change = (client: pg.ClientBase) => this.#storeModules(client, workspace, after, command, module);
      return { events, join: (own: StreamAppend) => this.#commitBoth(workspace, own, change) };
    });
    return { state, isChanged: isAppended };
  }

  /** Returns the bytes of a module; null if it belongs to no plug-in any more. */
  async readModule(workspace: string, digest: string): Promise<Uint8Array | null> {
    const { rows } = await inWorkspace(this.#deps.pool, workspace).query<{ bytes: Buffer }>(GET_MODULE, [
      workspace,
      digest,
    ]);
    return rows[0]?.bytes ?? null;
  }

  /** Keeps the modules in use only. A removed plug-in leaves no value. */
  async #storeModules(
    client: pg.ClientBase,
    workspace: string,
    { added }: WorkspacePlugins,
    { type, name }: Pick<PluginCommand, 'type' | 'name'>,
    module: NewModule | undefined,
  ): Promise<void> {
    if (module) await client.query(PUT_MODULE, [workspace, module.digest, Buffer.from(module.bytes)]);
    const digests = [...added.values()].flatMap((plugin) => currentVersion(plugin)?.digest ?? []);
    await client.query(DROP_MODULES, [workspace, digests]);
    if (type === 'Remove') await client.query(DROP_VALUES, [workspace, name]);
  }

  async #commitBoth(
    workspace: string,
    own: StreamAppend,
    change: (client: pg.ClientBase) => Promise<void>,
  ): Promise<boolean> {
    const { pool, store } = this.#deps;
    const commit = async (client: pg.ClientBase): Promise<boolean> => {
      await change(client);
      const [outcome] = await store.appendWithin(client, [{ workspace, streams: [own] }]);
      if (!outcome?.ok) throw outcome?.error ?? bug('PLUGIN.NO_OUTCOME', 'an append has no outcome');
      return outcome.result.outcome === 'appended';
    };
    const isAppended = await inTransaction(pool, commit, workspace);
    if (isAppended) store.notifyAppended('plugin');
    return isAppended;
  }

  #newEvent({ type, schemaVersion, data }: PluginEvent): NewEvent {
    const { correlationId, causationId, traceparent } = currentContext() ?? contextFrom(SERVICE);
    const origin = { correlationId, traceparent, ...(causationId ? { causationId } : {}) };
    const metadata = { ...origin, service: SERVICE };
    return { eventId: this.#deps.ids.next(), type, schemaVersion, data: data as JsonObject, metadata };
  }
}
