import { AGENT_STATES, type AgentFrame } from '@antiphon/contracts/gateway';
import { isPermitted, type Principal } from '@antiphon/contracts/identity';
import type { Logger } from '@antiphon/observability';
import type { AgentAccess } from '../access/agent-access.js';
import { isFeatureOn, type FeatureFlags } from '../access/access-guard.js';
import type { AgentStateFeed } from '../sockets/agent-state-feed.port.js';
import type { ClientConnection } from '../sockets/client-connection.js';
import type { AgentStreams } from './agent-streams.js';
import { isSubscribedToAll } from './agent-subscriptions.js';

const RESUME = (): string => 'by agent.subscribe';

export interface AgentStatesDeps {
  readonly features: FeatureFlags;
  readonly streams: Pick<AgentStreams, 'subscribe'>;
  readonly access: Pick<AgentAccess, 'canRead'>;
  readonly logger: Logger;
}

/**
 * Sends changes of the states of all agents to connections that understand them, without a
 * subscription. A connection understands them if it has sent a typed frame, or has named the
 * capability `agent-states`. Other clients get none.
 */
export class AgentStates implements AgentStateFeed {
  readonly #begun = new WeakMap<ClientConnection, Promise<void>>();

  constructor(private readonly deps: AgentStatesDeps) {}

  /** Begins for a client that named its capabilities. */
  beginFor(connection: ClientConnection, principal: Principal, capabilities: readonly string[]): void {
    if (capabilities.includes(AGENT_STATES)) void this.begin(connection, principal);
  }

  /**
   * Begins for a connection, once. Resolves when each later change is sent: a request that waits
   * for it shows the changes that it causes.
   */
  begin(connection: ClientConnection, principal: Principal): Promise<void> {
    const begun = this.#begun.get(connection) ?? this.#subscribe(connection, principal);
    this.#begun.set(connection, begun);
    return begun;
  }

  async #subscribe(connection: ClientConnection, principal: Principal): Promise<void> {
    const { features, streams, logger } = this.deps;
    if (!isFeatureOn(features, 'agent_runtime_v1') || !isPermitted(principal, 'agents:read')) return;
    try {
      const end = await streams.subscribe(principal.workspace, {
        agent: undefined,
        kinds: new Set(['state']),
        onSnapshot: () => undefined,
        send: this.#senderOf(connection, principal),
        waitForRoom: () => connection.waitForRoomToSend(RESUME),
        // The log was restored: the states begin again with the new history.
        onEnd: () => {
          stop();
          this.#begun.delete(connection);
          void this.begin(connection, principal);
        },
      });
      const stop = connection.addCleanup(end);
    } catch (error) {
      // The next typed frame tries again.
      this.#begun.delete(connection);
      logger.warn({ err: error, connectionId: connection.connectionId }, 'agent states not followed');
    }
  }

  /** Returns a sender that keeps the order of frames while the rights of an agent's key are read. */
  #senderOf(connection: ClientConnection, principal: Principal): (frame: AgentFrame) => void {
    let last = Promise.resolve();
    const send = (frame: AgentFrame): void => {
      if (!isSubscribedToAll(connection)) connection.sendText(() => JSON.stringify(frame), RESUME);
    };
    if (principal.agentId === null) return send;
    return (frame) => {
      last = last.then(async () => {
        const isReadable = await this.deps.access.canRead(principal, frame.agentId).catch(() => false);
        if (isReadable) send(frame);
      });
    };
  }
}
