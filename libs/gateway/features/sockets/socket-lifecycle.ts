import type { Server } from 'node:http';
import { Inject, Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { TOOLS_PATH } from '@antiphon/contracts/gateway';
import type { Principal } from '@antiphon/contracts/identity';
import type { Ids } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { IDS, LOGGER } from '@antiphon/service-host';
import type { WebSocket } from 'ws';
import type { Authenticator } from '../access/authenticator.js';
import type { SessionFeeds } from '../frames/session-feeds.js';
import { AUTHENTICATOR, SESSION_FEEDS } from '../gateway.ports.js';
import { ToolWorkerSockets } from '../tool-workers/tool-workers.service.js';
import { authenticateSocket } from './authenticate-socket.js';
import { AuthenticatedSockets } from './authenticated-sockets.js';
import { ClientConnection, createSharedOutput } from './client-connection.js';
import { subscribeRequest } from './events-socket.js';
import { RpcSession } from './rpc-session.js';
import { SocketMethods } from './socket-adapter.js';
import { attachSocketServer } from './socket-server.js';
import type { SocketPeer } from './socket-server.js';

/** Maximum number of open sockets of one gateway. An idle socket costs about 20 kB. */
const MAX_SOCKETS = 20_000;

/** Accepts sockets while the gateway runs. */
@Injectable()
export class SocketLifecycle implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly shared = createSharedOutput();
  private server: { close(): Promise<void> } | null = null;

  constructor(
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
    @Inject(AUTHENTICATOR) private readonly authenticator: Authenticator,
    @Inject(SocketMethods) private readonly methods: SocketMethods,
    @Inject(SESSION_FEEDS) private readonly feeds: SessionFeeds,
    @Inject(LOGGER) private readonly logger: Logger,
    @Inject(IDS) private readonly ids: Ids,
    @Inject(AuthenticatedSockets) private readonly sockets: AuthenticatedSockets,
    @Inject(ToolWorkerSockets) private readonly toolWorkers: ToolWorkerSockets,
  ) {}

  onApplicationBootstrap(): void {
    const { authenticator, logger, ids } = this;
    this.server = attachSocketServer(this.host.httpAdapter.getHttpServer() as Server, {
      authenticator,
      logger,
      ids,
      maxSockets: MAX_SOCKETS,
      onSocket: (socket, peer) => this.accept(socket, peer),
    });
  }

  async onModuleDestroy(): Promise<void> {
    await this.toolWorkers.stop();
    await this.server?.close();
    this.feeds.close();
  }

  private accept(socket: WebSocket, peer: SocketPeer): void {
    const { address, principal, isForeign, traceparent } = peer;
    const { authenticator, logger, ids } = this;
    const identity = { connectionId: ids.next(), address };
    const connection = new ClientConnection(socket, identity, this.shared, logger);
    const { capabilities, table: methods } = this.methods;
    const onReady = (authenticated: Principal, named: readonly string[]) => {
      peer.onAuthenticated();
      if (peer.url.split('?', 1)[0] === TOOLS_PATH) {
        this.sockets.closeWithCredential(socket, connection, authenticated);
        const begin = this.toolWorkers.begin(socket, connection, authenticated, authenticator.limits);
        return begin ?? (() => undefined);
      }
      const session = new RpcSession({
        connection,
        methods,
        principal: authenticated,
        limits: authenticator.limits,
        onTyped: () => this.sockets.beginTyped(connection, authenticated),
        traceparent,
        logger,
        ids,
      });
      this.sockets.begin(socket, connection, authenticated, named);
      const first = subscribeRequest(peer.url);
      if (first !== undefined) session.receive(first, Buffer.byteLength(first));
      return (text: string, bytes: number) => session.receive(text, bytes);
    };
    const isLocal = principal !== null && principal === authenticator.local;
    const options = {
      socket,
      connection,
      authenticator,
      principal,
      isLocal,
      isForeign,
      capabilities,
      logger,
    };
    authenticateSocket({ ...options, onReady });
  }
}
