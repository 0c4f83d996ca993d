import { Catch, Inject, Injectable, UseFilters, type ExceptionFilter } from '@nestjs/common';
import type { WsMessageHandler } from '@nestjs/common';
import { AbstractWsAdapter, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import type { AntiphonConfig } from '@antiphon/config';
import type { Principal } from '@antiphon/contracts/identity';
import { SOCKET_METHODS } from '@antiphon/contracts/reference';
import { CONFIG } from '@antiphon/service-host';
import { isObservable, lastValueFrom, type Observable } from 'rxjs';
import { isFeatureOn } from '../access/access-guard.js';
import { METHODS } from '../gateway.ports.js';
import type { MethodTable, RpcMethod } from './rpc-method.js';

/** Authenticated client of the gateway, as Nest's guards see it. */
export class GatewayClient {
  /** Methods behind Nest's guards. */
  readonly methods = new Map<string, RpcMethod>();

  constructor(readonly principal: Principal) {}
}

type OnConnect = (client: GatewayClient) => void;

/** Connects the socket server with Nest: each authenticated client gets the methods of its own. */
@Injectable()
export class GatewayClients {
  /** Names of the methods that are served, as `session.ack` lists them. */
  readonly capabilities: readonly string[];
  readonly #listeners: OnConnect[] = [];

  constructor(@Inject(CONFIG) { features }: Pick<AntiphonConfig, 'features'>) {
    const served = SOCKET_METHODS.filter(({ feature }) => isFeatureOn(features, feature));
    this.capabilities = served.map(({ name }) => name);
  }

  onConnect(listener: OnConnect): void {
    this.#listeners.push(listener);
  }

  /** Returns a client whose methods are bound. Throws if the application has no `SocketAdapter`. */
  connect(principal: Principal): GatewayClient {
    const client = new GatewayClient(principal);
    for (const listener of this.#listeners) listener(client);
    if (client.methods.size === 0) throw new Error('the application has no SocketAdapter');
    return client;
  }
}

type Result = Awaited<ReturnType<RpcMethod['handle']>>;

/** Returns the result of a handler, which Nest passes on as an observable behind an interceptor. */
const settle = (result: unknown): Promise<Result> | Result =>
  isObservable(result)
    ? lastValueFrom(result as Observable<Result>, { defaultValue: undefined })
    : (result as Result);

/**
 * Binds the methods of Nest's WebSocket gateways to clients of the socket server. Admission, order
 * and backpressure stay with the socket server and `RpcSession`.
 */
export class SocketAdapter extends AbstractWsAdapter {
  readonly #clients: GatewayClients;

  constructor(clients: GatewayClients) {
    super();
    this.#clients = clients;
  }

  override create(): GatewayClients {
    return this.#clients;
  }

  override bindClientConnect(clients: GatewayClients, onConnect: OnConnect): void {
    clients.onConnect(onConnect);
  }

  override bindClientDisconnect(): void {
    // No gateway listens for the end of a client; `ClientConnection` runs the cleanups.
  }

  override bindMessageHandlers({ methods }: GatewayClient, handlers: WsMessageHandler[]): void {
    for (const { message: name, callback } of handlers)
      methods.set(name, { name, handle: async (call) => settle(await callback(call)) });
  }

  /** Does nothing: `SocketLifecycle` closes the sockets when its module is destroyed. */
  override close(): Promise<void> {
    return Promise.resolve();
  }
}

/** Passes errors on to `RpcSession`, which answers them. */
@Catch()
class PassErrors implements ExceptionFilter {
  catch(error: unknown): never {
    throw error;
  }
}

/** Serves every method of the reference as a message of a Nest gateway, behind the global guards. */
@WebSocketGateway()
@UseFilters(PassErrors)
export class ClientGateway {
  constructor(@Inject(METHODS) readonly methods: MethodTable) {}
}

const subscribe = (name: string): void => {
  const value = function (
    this: ClientGateway,
    _client: GatewayClient,
    call: Parameters<RpcMethod['handle']>[0],
  ): ReturnType<RpcMethod['handle']> {
    const method = this.methods.get(name);
    if (!method) throw new Error(`the method ${name} of the reference is not served`);
    return method.handle(call);
  };
  const descriptor = { value, writable: true, configurable: true };
  Object.defineProperty(ClientGateway.prototype, name, descriptor);
  SubscribeMessage(name)(ClientGateway.prototype, name, descriptor);
};
for (const { name } of SOCKET_METHODS) subscribe(name);
