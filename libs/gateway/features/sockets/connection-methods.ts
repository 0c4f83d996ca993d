import { Inject } from '@nestjs/common';
import { WebSocketGateway } from '@nestjs/websockets';
import { ConnectParams } from '@antiphon/contracts/gateway';
import { METHODS } from '@antiphon/contracts/reference';
import type { z } from 'zod';
import { AGENT_STATE_FEED, STATUS } from '../gateway.ports.js';
import type { StatusReader } from '../status/status.controller.js';
import type { AgentStateFeed } from './agent-state-feed.port.js';
import { HandleMethod } from './handle-method.js';
import type { MethodCall, RpcCall } from './rpc-method.js';

/** `connect` of an authenticated connection. A client need not know whether a token is configured. */
const CONNECT = { ...METHODS.connect, params: ConnectParams.pick({ capabilities: true }).strip() };

/** Serves the methods of a connection itself. */
@WebSocketGateway()
export class ConnectionMethods {
  constructor(
    @Inject(STATUS) private readonly readStatus: StatusReader,
    @Inject(AGENT_STATE_FEED) private readonly states: Pick<AgentStateFeed, 'beginFor'>,
  ) {}

  @HandleMethod(METHODS.ping)
  ping() {
    return 'pong' as const;
  }

  @HandleMethod(METHODS.status)
  status({ principal }: MethodCall<'status'>) {
    return this.readStatus(principal);
  }

  @HandleMethod(CONNECT)
  connect({ connection, principal, params }: RpcCall<z.output<typeof CONNECT.params>>) {
    this.states.beginFor(connection, principal, params.capabilities ?? []);
    return { connectionId: connection.connectionId };
  }
}
