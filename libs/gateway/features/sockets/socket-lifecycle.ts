import type { Server } from 'node:http';
import { Inject, Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Ids } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { IDS, LOGGER } from '@antiphon/service-host';
import type { WebSocket } from 'ws';
import type { TokenGate } from '../access/token-gate.js';
import type { SessionFeeds } from '../frames/session-feeds.js';
import { METHODS, SESSION_FEEDS, TOKEN_GATE, WORKSPACE } from '../gateway.ports.js';
import { authenticateSocket } from './authenticate-socket.js';
import { ClientConnection, createSharedOutput } from './client-connection.js';
import { EngineStatusBroadcaster } from './engine-status-broadcaster.js';
import type { MethodTable } from './rpc-method.js';
import { RpcSession } from './rpc-session.js';
import { attachSocketServer } from './socket-server.js';
import type { SocketPeer } from './socket-server.js';

/** Maximum number of open sockets of one gateway. An idle socket costs about 20 kB. */
const MAX_SOCKETS = 20_000;

/**
 * Returns the principal of a socket. All clients of a kind are one principal until API keys tell
 * them apart.
 */
const callerOf = (gate: TokenGate): string => (gate.required ? 'token' : 'loopback');

/** Accepts sockets while the gateway runs. */
@Injectable()
export class SocketLifecycle implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly shared = createSharedOutput();
  private server: { close(): Promise<void> } | null = null;

  constructor(
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
    @Inject(TOKEN_GATE) private readonly gate: TokenGate,
    @Inject(METHODS) private readonly methods: MethodTable,
    @Inject(SESSION_FEEDS) private readonly feeds: SessionFeeds,
    @Inject(WORKSPACE) private readonly workspace: string,
    @Inject(LOGGER) private readonly logger: Logger,
    @Inject(IDS) private readonly ids: Ids,
    @Inject(EngineStatusBroadcaster) private readonly engineStatus: EngineStatusBroadcaster,
  ) {}

  onApplicationBootstrap(): void {
    const { gate, logger, ids } = this;
    this.server = attachSocketServer(this.host.httpAdapter.getHttpServer() as Server, {
      gate,
      logger,
      ids,
      maxSockets: MAX_SOCKETS,
      onSocket: (socket, peer) => this.accept(socket, peer),
    });
  }

  async onModuleDestroy(): Promise<void> {
    await this.server?.close();
    this.feeds.close();
  }

  private accept(socket: WebSocket, { address, authenticated, traceparent }: SocketPeer): void {
    const { gate, logger, ids, methods, workspace } = this;
    const identity = { connectionId: ids.next(), address };
    const connection = new ClientConnection(socket, identity, this.shared, logger);
    const caller = callerOf(gate);
    const session = new RpcSession({ connection, methods, workspace, caller, traceparent, logger, ids });
    const capabilities = [...methods.keys()];
    const onReady = () => {
      this.engineStatus.subscribe(connection);
      return (text: string, bytes: number) => session.receive(text, bytes);
    };
    authenticateSocket({ socket, connection, gate, authenticated, capabilities, logger, onReady });
  }
}
