import type { Dispatcher } from 'undici';
import { Agent } from 'undici';
import type { CallEnvironment, ProviderCall } from './provider-call.js';
import { ResponseReader } from './response-reader.js';
import type { EventReader } from './response-reader.js';

/**
 * Idle connections live shorter than the shortest common keep-alive (5 s), so none is reused while
 * the server closes it.
 */
const IDLE_CONNECTION_MS = 4_000;

/** A request to a provider. Its headers carry the key. */
export interface ProviderRequest {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text. */
  readonly body: string;
  /** Name of the model, for errors. */
  readonly model: string;
}

/**
 * Posts requests to providers. Every failure is a `ModelFailure`, also where the connection fails.
 */
export interface HttpTransport {
  /**
   * Posts a request and feeds each event of the streamed response to `reader`, within the socket's
   * read.
   */
  stream(request: ProviderRequest, call: ProviderCall, reader: EventReader): Promise<void>;
  /** Posts a request and returns the parsed JSON of its response. */
  fetchJson(request: ProviderRequest, call: ProviderCall): Promise<unknown>;
  close(): void;
}

/**
 * Creates the connection pools: HTTP/1.1 with keep-alive. Redirects are not followed; they would
 * forward the key.
 */
export const createConnections = (connectMs: number): Agent =>
  new Agent({
    allowH2: false,
    // Pipelining would hold a call back behind another's stream.
    pipelining: 1,
    keepAliveTimeout: IDLE_CONNECTION_MS,
    keepAliveMaxTimeout: IDLE_CONNECTION_MS,
    connect: { timeout: connectMs },
    // A call has its own timeouts, by phase; they start before a connection exists.
    headersTimeout: 0,
    bodyTimeout: 0,
  });

/**
 * Returns the headers of a request. Credentials within base_url apply where no key is configured.
 */
const headersOf = ({ url, headers }: ProviderRequest): Record<string, string> => {
  const basic = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  return {
    'user-agent': 'antiphon/0.1.0',
    // A compressed response could expand beyond every limit.
    'accept-encoding': 'identity',
    'content-type': 'application/json',
    accept: 'application/json',
    ...(basic === ':' ? {} : { authorization: `Basic ${Buffer.from(basic).toString('base64')}` }),
    ...headers,
  };
};

/** Returns `host:port` without credentials. */
const addressOf = ({ hostname, port, protocol }: URL): string =>
  `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`;

export const createHttpTransport = (
  dispatcher: Pick<Dispatcher, 'dispatch'> & { destroy?: () => unknown },
  environment: CallEnvironment,
): HttpTransport => {
  const post = (
    request: ProviderRequest,
    call: ProviderCall,
    events: EventReader | null,
  ): Promise<unknown> => {
    if (call.failure !== null) return Promise.reject(call.failure);
    const { url } = request;
    const target = {
      address: addressOf(url),
      endpoint: `${url.origin}${url.pathname}`,
      model: request.model,
    };
    const reader = new ResponseReader(call, events, target, environment);
    dispatcher.dispatch(
      {
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: 'POST',
        headers: headersOf(request),
        body: request.body,
      },
      reader,
    );
    return reader.response;
  };
  return {
    stream: async (request, call, reader) => {
      try {
        await post(request, call, reader);
      } catch (error) {
        // A failure after the model has finished does not change the answer.
        if (!reader.isComplete()) throw error;
      }
      if (call.failure !== null) throw call.failure;
    },
    fetchJson: (request, call) => post(request, call, null),
    close: () => void dispatcher.destroy?.(),
  };
};
