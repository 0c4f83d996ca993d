import type { Connections } from './connections.js';
import type { CallEnvironment, ProviderCall } from './provider-call.js';
import { ResponseReader } from './response-reader.js';
import type { EventReader } from './response-reader.js';

/** A request to a provider. Its headers carry the key. */
export interface ProviderRequest {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text; null for a request by GET. */
  readonly body: string | null;
  /** Name of the model, for errors. */
  readonly model: string;
}

/**
 * Sends requests to providers. Every failure is a `ModelFailure`, also where the connection fails.
 */
export interface HttpTransport {
  /**
   * Posts a request and feeds each event of the streamed response to `reader`, within the socket's
   * read.
   */
  stream(request: ProviderRequest, call: ProviderCall, reader: EventReader): Promise<void>;
  /** Sends a request and returns the parsed JSON of its response. */
  fetchJson(request: ProviderRequest, call: ProviderCall): Promise<unknown>;
  close(): void;
}

/**
 * Returns the headers of a request. Credentials within base_url apply where no key is configured.
 */
const headersOf = ({ url, headers, body }: ProviderRequest): Record<string, string> => {
  const basic = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  return {
    'user-agent': 'antiphon/0.1.0',
    // A proxy that compresses a stream delays its first events. One that comes so is decoded.
    'accept-encoding': 'identity',
    ...(body === null ? {} : { 'content-type': 'application/json' }),
    accept: 'application/json',
    ...(basic === ':' ? {} : { authorization: `Basic ${Buffer.from(basic).toString('base64')}` }),
    ...headers,
  };
};

/** Returns `host:port` without credentials. */
const addressOf = ({ hostname, port, protocol }: URL): string =>
  `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`;

/** @param proxy the proxy of the connections, as errors name it */
export const createHttpTransport = (
  connections: Connections,
  environment: CallEnvironment,
  proxy: string | null = null,
): HttpTransport => {
  const send = (
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
      proxy,
    };
    const reader = new ResponseReader(call, events, target, environment);
    connections.dispatch(
      {
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: request.body === null ? 'GET' : 'POST',
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
        await send(request, call, reader);
      } catch (error) {
        // A failure after the model has finished does not change the answer.
        if (!reader.isComplete()) throw error;
      }
      if (call.failure !== null) throw call.failure;
    },
    fetchJson: (request, call) => send(request, call, null),
    close: () => void connections.destroy?.(),
  };
};
