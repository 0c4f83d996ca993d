import { Inject, Injectable } from '@nestjs/common';
import type { Principal } from '@antiphon/contracts/identity';
import type { Logger } from '@antiphon/observability';
import { LOGGER } from '@antiphon/service-host';
import type { WebSocket } from 'ws';
import type { Identities } from '../access/identities.port.js';
import { AGENT_STATE_FEED, IDENTITIES } from '../gateway.ports.js';
import type { AgentStateFeed } from './agent-state-feed.port.js';
import type { ClientConnection } from './client-connection.js';
import { EngineStatusBroadcaster } from './engine-status-broadcaster.js';

/** Close code for a client whose key was revoked or expired. */
const CLOSE_REVOKED = 4403;
/** Time for such a client to answer the close, ms. */
const CLOSE_GRACE_MS = 300;

/** Sends every authenticated socket what it did not ask for, and closes it with its credential. */
@Injectable()
export class AuthenticatedSockets {
  constructor(
    @Inject(IDENTITIES) private readonly identities: Identities,
    @Inject(EngineStatusBroadcaster) private readonly engineStatus: EngineStatusBroadcaster,
    @Inject(AGENT_STATE_FEED) private readonly agentStates: AgentStateFeed,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** `named` are the capabilities that the client named. */
  begin(
    socket: WebSocket,
    connection: ClientConnection,
    principal: Principal,
    named: readonly string[],
  ): void {
    this.closeWithCredential(socket, connection, principal);
    this.engineStatus.subscribe(connection);
    this.agentStates.beginFor(connection, principal, named);
  }

  /** Sends the states of agents to a client that speaks typed frames. */
  beginTyped(connection: ClientConnection, principal: Principal): Promise<void> {
    return this.agentStates.begin(connection, principal);
  }

  /** Closes the socket once its key is revoked or expires. A peer that does not answer is cut off. */
  closeWithCredential(socket: WebSocket, connection: ClientConnection, principal: Principal): void {
    const { keyId } = principal;
    const unwatch = this.identities.watch(principal, () => {
      this.logger.info({ connectionId: connection.connectionId, keyId }, 'socket credential ended');
      connection.close(CLOSE_REVOKED, 'the key was revoked or expired');
      setTimeout(() => socket.terminate(), CLOSE_GRACE_MS).unref();
    });
    connection.addCleanup(unwatch);
  }
}
