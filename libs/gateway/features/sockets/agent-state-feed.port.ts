import type { Principal } from '@antiphon/contracts/identity';
import type { ClientConnection } from './client-connection.js';

/** Sends changes of the states of agents to connections that understand them. */
export interface AgentStateFeed {
  /** Begins for a client that named its capabilities. */
  beginFor(connection: ClientConnection, principal: Principal, capabilities: readonly string[]): void;
  /** Begins for a connection, once. Resolves when each later change is sent. */
  begin(connection: ClientConnection, principal: Principal): Promise<void>;
}
