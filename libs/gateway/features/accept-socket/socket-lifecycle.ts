import type { Server } from 'node:http';
import { Inject, Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Ids } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { IDS, LOGGER } from '@antiphon/service-host';
import type { WebSocket } from 'ws';
import { createClientConnection } from '../answer-rpc/client-connection.js';
import type { MethodTable } from '../answer-rpc/rpc-method.js';
import { createSendBuffers } from '../answer-rpc/send-buffers.js';
import { createRpcSession } from '../answer-rpc/rpc-session.js';
import type { TokenGate } from '../authenticate/token-gate.js';
import { METHODS, SESSION_FEEDS, TOKEN_GATE, WORKSPACE } from '../gateway.tokens.js';
import type { SessionFeeds } from '../stream-frames/session-feeds.js';
import { EngineTeller } from '../tell-engines/engine-teller.js';
import { shakeHands } from './handshake.js';
import { attachSocketServer } from './socket-server.js';
import type { SocketPeer } from './socket-server.js';

/** Open sockets of one gateway at most; idle ones cost about 20 kB each. */
const MAX_SOCKETS = 20_000;
/** Every local or token-bearing client is the same principal until there are keys (contract §5). */
const caller = (gate: TokenGate): string => (gate.required ? 'token' : 'loopback');

/** Accepts sockets from when the gateway serves until it stops. */
@Injectable()
export class SocketLifecycle implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly buffers = createSendBuffers();
  private server: { close(): Promise<void> } | null = null;

  constructor(
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
    @Inject(TOKEN_GATE) private readonly gate: TokenGate,
    @Inject(METHODS) private readonly methods: MethodTable,
    @Inject(SESSION_FEEDS) private readonly feeds: SessionFeeds,
    @Inject(WORKSPACE) private readonly workspace: string,
    @Inject(LOGGER) private readonly logger: Logger,
    @Inject(IDS) private readonly ids: Ids,
    @Inject(EngineTeller) private readonly engines: EngineTeller,
  ) {}

  onApplicationBootstrap(): void {
    const { gate, logger, ids } = this;
    this.server = attachSocketServer(this.host.httpAdapter.getHttpServer() as Server, {
      gate,
      logger,
      ids,
      maxSockets: MAX_SOCKETS,
      onSocket: (socket, peer) => this.greet(socket, peer),
    });
  }

  async onModuleDestroy(): Promise<void> {
    await this.server?.close();
    this.feeds.close();
  }

  private greet(socket: WebSocket, { address, authenticated, traceparent }: SocketPeer): void {
    const { gate, logger, ids, methods, workspace, engines } = this;
    const connection = createClientConnection(
      socket,
      { connectionId: ids.next(), address },
      this.buffers,
      logger,
    );
    const who = { workspace, caller: caller(gate), traceparent };
    const session = createRpcSession({ connection, methods, ...who, logger, ids });
    const capabilities = [...methods.keys()];
    const onReady = () => {
      engines.keepTold(connection);
      return session.receive;
    };
    shakeHands({ socket, connection, gate, authenticated, capabilities, logger, onReady });
  }
}
