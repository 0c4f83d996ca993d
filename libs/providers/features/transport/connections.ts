import { createSecureContext, getCACertificates } from 'node:tls';
import type { ProxyChoice } from '@antiphon/config';
import { proxyAddress } from '@antiphon/config';
import { Agent, Pool, ProxyAgent } from 'undici';
import type { Dispatcher } from 'undici';

/**
 * Idle connections live shorter than the shortest common keep-alive (5 s), so none is reused while
 * the server closes it.
 */
const IDLE_CONNECTION_MS = 4_000;

/** Time by which an attempt to connect may outlive the limit of its call, ms. */
const CONNECT_MARGIN_MS = 1_000;

/** Part of undici's dispatcher that calls use. */
export type Connections = Pick<Dispatcher, 'dispatch'> & { destroy?: () => unknown };

/** The way to a provider, and the certificates that it accepts besides those of the system. */
export interface Route {
  readonly proxy: ProxyChoice;
  /** PEM; null for no other certificates. */
  readonly ca: string | null;
  /** Longest time that a call waits for a connection, ms. */
  readonly connectMs: number;
}

/** The proxy of a call, as errors name it; null without one. */
export const describeProxy = ({ proxy }: Pick<Route, 'proxy'>): string | null =>
  proxy.kind === 'proxy' ? `${proxyAddress(proxy.url)} (${proxy.from})` : null;

const createAgent = ({ proxy, ca, connectMs }: Route, isHttp2: boolean): Dispatcher => {
  const timeout = connectMs + CONNECT_MARGIN_MS;
  const trusted = ca === null ? {} : { ca: [...getCACertificates('default'), ca] };
  // Read once: a context for each connection would parse all certificates again.
  const tls = ca === null ? {} : { secureContext: createSecureContext(trusted) };
  const connect = { ...tls, timeout };
  const options = {
    allowH2: isHttp2,
    // Pipelining would hold a call back behind another's stream.
    ...(isHttp2 ? {} : { pipelining: 1 }),
    keepAliveTimeout: IDLE_CONNECTION_MS,
    keepAliveMaxTimeout: IDLE_CONNECTION_MS,
    // A call has its own timeouts, by phase; they start before a connection exists.
    headersTimeout: 0,
    bodyTimeout: 0,
  };
  if (proxy.kind !== 'proxy') return new Agent({ ...options, connect });
  return new ProxyAgent({
    ...options,
    uri: proxy.url.href,
    requestTls: { ...connect, allowH2: isHttp2 },
    proxyTls: { ...connect, allowH2: false },
    clientFactory: (origin, own) => new Pool(origin, { ...own, headersTimeout: timeout }),
  });
};

/** A server that speaks no HTTP/1.1 ends the handshake so. */
const needsHttp2 = (error: Error): boolean =>
  (error as NodeJS.ErrnoException).code === 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL';

/** Passes a response on, except for a handshake that failed because the server needs HTTP/2. */
class Http1Response implements Dispatcher.DispatchHandler {
  constructor(
    private readonly handler: Dispatcher.DispatchHandler,
    private readonly retryWithHttp2: () => void,
  ) {}

  onRequestStart(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onRequestStart']>>): void {
    this.handler.onRequestStart?.(...args);
  }

  onResponseStart(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>): void {
    this.handler.onResponseStart?.(...args);
  }

  onResponseData(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseData']>>): void {
    this.handler.onResponseData?.(...args);
  }

  onResponseEnd(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseEnd']>>): void {
    this.handler.onResponseEnd?.(...args);
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    if (needsHttp2(error)) this.retryWithHttp2();
    else this.handler.onResponseError?.(controller, error);
  }
}

/**
 * Creates the connection pools of a provider: HTTP/1.1 with keep-alive, and HTTP/2 for a server
 * that speaks nothing else. Redirects are not followed; they would forward the key.
 */
export const createConnections = (route: Route): Connections => {
  const http1 = createAgent(route, false);
  let http2: Dispatcher | null = null;
  return {
    dispatch: (options, handler) => {
      if (http2 !== null) return http2.dispatch(options, handler);
      if (!String(options.origin).startsWith('https:')) return http1.dispatch(options, handler);
      const retryWithHttp2 = (): void => {
        http2 ??= createAgent(route, true);
        http2.dispatch(options, handler);
      };
      return http1.dispatch(options, new Http1Response(handler, retryWithHttp2));
    },
    destroy: () => {
      void http1.destroy();
      void http2?.destroy();
    },
  };
};
