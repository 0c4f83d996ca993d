import { upcast } from '@antiphon/contracts/events';
import { MCP_STREAM, McpEvent } from '@antiphon/contracts/sandbox';
import { AggregateStore } from '@antiphon/event-store';
import type { EventStore, NewEvent } from '@antiphon/event-store';
import { isoTime } from '@antiphon/kernel';
import type { Clock, Ids, JsonObject } from '@antiphon/kernel';
import { contextFrom, currentContext } from '@antiphon/observability';
import { mcpServersDecider } from '@antiphon/sandbox-domain';
import type { McpCommand, McpServers } from '@antiphon/sandbox-domain';

const SERVICE = 'sandbox';
/** Maximum number of workspaces whose servers a process keeps. */
const MAX_WORKSPACES = 1_000;

export interface McpRegistryDeps {
  readonly store: Pick<EventStore, 'append' | 'readStream'>;
  readonly ids: Ids;
  readonly clock: Clock;
}

type Without<T, K extends string> = T extends unknown ? Omit<T, K> : never;

/** MCP servers of the workspaces and the descriptions of their tools: folds of their event streams. */
export class McpRegistry {
  readonly #streams: AggregateStore<McpServers, McpEvent>;

  constructor(private readonly deps: McpRegistryDeps) {
    this.#streams = new AggregateStore({
      ...{ store: deps.store, decider: mcpServersDecider, streamOf: () => MCP_STREAM },
      parse: (recorded) => McpEvent.safeParse(upcast(recorded)).data ?? null,
      toNewEvent: (event) => this.#newEvent(event),
      cache: { maxStreams: MAX_WORKSPACES },
    });
  }

  /** Reads the servers of a workspace, with the newest facts. */
  async read(workspace: string): Promise<McpServers> {
    return (await this.#streams.read(workspace, MCP_STREAM)).state;
  }

  /** Decides and commits a change. Returns the servers after it, and whether a fact was added. */
  async commit(
    workspace: string,
    command: Without<McpCommand, 'now'>,
  ): Promise<{ readonly servers: McpServers; readonly isChanged: boolean }> {
    const now = isoTime(this.deps.clock);
    const { state, isAppended } = await this.#streams.commit(workspace, MCP_STREAM, (folded) => ({
      events: mcpServersDecider.decide({ ...command, now } as McpCommand, folded.state),
    }));
    return { servers: state, isChanged: isAppended };
  }

  #newEvent({ type, schemaVersion, data }: McpEvent): NewEvent {
    const { correlationId, causationId, traceparent } = currentContext() ?? contextFrom(SERVICE);
    const origin = { correlationId, traceparent, ...(causationId ? { causationId } : {}) };
    const metadata = { ...origin, service: SERVICE };
    return { eventId: this.deps.ids.next(), type, schemaVersion, data: data as JsonObject, metadata };
  }
}
