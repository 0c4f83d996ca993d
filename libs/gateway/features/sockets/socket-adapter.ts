import { Inject, Injectable } from '@nestjs/common';
import type { OnApplicationBootstrap, WsMessageHandler } from '@nestjs/common';
import { AbstractWsAdapter } from '@nestjs/websockets';
import type { AntiphonConfig } from '@antiphon/config';
import { SOCKET_METHODS } from '@antiphon/contracts/reference';
import { CONFIG } from '@antiphon/service-host';
import { isObservable, lastValueFrom, type Observable } from 'rxjs';
import { isFeatureOn } from '../access/access-guard.js';
import type { MethodTable, RawCall, RpcResult } from './rpc-method.js';

/** Returns the result of a handler, which Nest passes on as an observable behind an interceptor. */
const settle = (result: unknown): Promise<RpcResult> | RpcResult =>
  isObservable(result)
    ? lastValueFrom(result as Observable<RpcResult>, { defaultValue: undefined })
    : (result as RpcResult);

/** The methods of all gateways behind Nest's guards. All sockets share them. */
@Injectable()
export class SocketMethods implements OnApplicationBootstrap {
  /** Names of the methods that are served, as `session.ack` lists them. */
  readonly capabilities: readonly string[];
  readonly #handlers = new Map<string, (call: RawCall) => Promise<RpcResult>>();

  constructor(@Inject(CONFIG) { features }: Pick<AntiphonConfig, 'features'>) {
    const served = SOCKET_METHODS.filter(({ feature }) => isFeatureOn(features, feature));
    this.capabilities = served.map(({ name }) => name);
  }

  get table(): MethodTable {
    return this.#handlers;
  }

  /** Adds the handlers of one gateway. Throws for a method that another handler has. */
  add(handlers: readonly WsMessageHandler[]): void {
    for (const { message: name, callback } of handlers) {
      if (this.#handlers.has(name)) throw new Error(`two handlers serve ${name}`);
      this.#handlers.set(name, async (call) => settle(await callback(call)));
    }
  }

  /** Throws if a method of the reference has no handler. */
  onApplicationBootstrap(): void {
    const missing = SOCKET_METHODS.filter(({ name }) => !this.#handlers.has(name)).map(({ name }) => name);
    if (missing.length > 0) throw new Error(`no handler serves ${missing.join(', ')}`);
  }
}

/**
 * Connects Nest's WebSocket gateways with the socket server. Nest binds the handlers to one client,
 * which stands for all sockets: a call has its principal and its connection. Admission, order and
 * backpressure stay with the socket server and `RpcSession`.
 */
export class SocketAdapter extends AbstractWsAdapter {
  readonly #methods: SocketMethods;

  constructor(methods: SocketMethods) {
    super();
    this.#methods = methods;
  }

  override create(): SocketMethods {
    return this.#methods;
  }

  override bindClientConnect(methods: SocketMethods, onConnect: (client: SocketMethods) => void): void {
    onConnect(methods);
  }

  override bindClientDisconnect(): void {
    // No gateway listens for the end of a client; `ClientConnection` runs the cleanups.
  }

  override bindMessageHandlers(methods: SocketMethods, handlers: WsMessageHandler[]): void {
    methods.add(handlers);
  }

  /** Does nothing: `SocketLifecycle` closes the sockets when its module is destroyed. */
  override close(): Promise<void> {
    return Promise.resolve();
  }
}
