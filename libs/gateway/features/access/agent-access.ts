import { Inject, Injectable } from '@nestjs/common';
import { getAgent, sessionStream } from '@antiphon/contracts/agent';
import type { Principal } from '@antiphon/contracts/identity';
import type { EventStore } from '@antiphon/event-store';
import { createBoundedMap, forbidden, isAppError } from '@antiphon/kernel';
import { REQUESTS } from '@antiphon/service-host';
import type { GatewayRequests } from '../gateway.ports.js';

/** Number of agents whose parent is remembered. The parent of an agent never changes. */
const MAX_AGENTS = 10_000;
/** Number of first events of a session that are read for its agent. */
const FIRST_EVENTS = { fromVersion: 1, limit: 1 };

type Reader = Pick<Principal, 'workspace' | 'agentId'>;

const refuse = (own: string): never => {
  throw forbidden('AGENT.NOT_ALLOWED', `agent "${own}" may read only itself and its descendants`);
};

/** Returns false for an agent that the configuration no longer has. */
const refuseUnknown = (error: unknown): boolean => {
  if (isAppError(error) && error.code === 'AGENT.NOT_FOUND') return false;
  throw error;
};

/**
 * Limits the reads of an agent's key to the agent and its descendants. The keys of people and
 * programs read all agents of their workspace.
 */
@Injectable()
export class AgentAccess {
  readonly #requests: GatewayRequests;
  readonly #parents = createBoundedMap<{ readonly id: string | null }>(MAX_AGENTS);

  constructor(@Inject(REQUESTS) requests: GatewayRequests) {
    this.#requests = requests;
  }

  /** Returns true if the principal may read this agent. Throws `AGENT.NOT_FOUND`. */
  async canRead({ workspace, agentId: own }: Reader, agentId: string): Promise<boolean> {
    if (own === null) return true;
    for (let id: string | null = agentId; id !== null; id = await this.#parentOf(workspace, id))
      if (id === own) return true;
    return false;
  }

  /** Returns the items with an agent that the principal may read. An unknown agent is not readable. */
  async filter<T>(
    reader: Reader,
    items: readonly T[],
    agentsOf: (item: T) => readonly (string | null)[],
  ): Promise<T[]> {
    if (reader.agentId === null) return [...items];
    const isReadable = await Promise.all(items.map((item) => this.#canReadAny(reader, agentsOf(item))));
    return items.filter((_, index) => isReadable[index]);
  }

  /** Throws `AGENT.NOT_ALLOWED` unless the principal may read one of these agents. */
  async requireAny(reader: Reader, agentIds: readonly (string | null)[]): Promise<void> {
    const { agentId: own } = reader;
    if (own !== null && !(await this.#canReadAny(reader, agentIds))) refuse(own);
  }

  /**
   * Throws `AGENT.NOT_ALLOWED` unless the principal may read this agent. Without an agent, a key of
   * an agent is refused.
   */
  async require(reader: Reader, agentId: string | undefined): Promise<void> {
    const { agentId: own } = reader;
    if (own === null) return;
    if (agentId === undefined || !(await this.canRead(reader, agentId))) refuse(own);
  }

  /** Throws `AGENT.NOT_ALLOWED` unless the principal may read the sessions of this session's agent. */
  async requireSession(
    reader: Reader,
    store: Pick<EventStore, 'readStreamPage'>,
    sessionId: string,
  ): Promise<void> {
    if (reader.agentId === null) return;
    const page = await store.readStreamPage(reader.workspace, sessionStream(sessionId), FIRST_EVENTS);
    const agentId = page.events[0]?.data['agentId'];
    // An unknown session has no agent: the read itself says so.
    if (typeof agentId === 'string') await this.require(reader, agentId);
  }

  async #canReadAny(reader: Reader, agentIds: readonly (string | null)[]): Promise<boolean> {
    for (const id of agentIds) if (id && (await this.canRead(reader, id).catch(refuseUnknown))) return true;
    return false;
  }

  async #parentOf(workspace: string, agentId: string): Promise<string | null> {
    const key = `${workspace}/${agentId}`;
    const known = this.#parents.get(key);
    if (known) return known.id;
    const { agent } = await this.#requests.request(getAgent, { workspace, agentId });
    this.#parents.put(key, { id: agent.parentId });
    return agent.parentId;
  }
}
