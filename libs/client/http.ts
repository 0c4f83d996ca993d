import { CLIENT_ERRORS, ClientError, errorOfResponse } from './errors.js';
import type { HttpClient, UploadBody } from './reference.js';
import { ROUTES } from './reference-table.js';
import { createKey, readToken, type Token } from './web-socket.js';

/** Facts about a route that a request needs. */
export interface RouteFacts {
  readonly method: string;
  readonly path: string;
  /** True for routes whose requests an `Idempotency-Key` joins. */
  readonly idempotent?: boolean;
  /** True for replies that are not JSON. */
  readonly text?: boolean;
}

/** Response as the client reads it. The one of `fetch` is such a response. */
export interface HttpResponse {
  readonly status: number;
  readonly ok: boolean;
  readonly headers: { get(name: string): string | null };
  text(): Promise<string>;
  arrayBuffer(): Promise<ArrayBuffer>;
}

/** Sends a request, as `fetch` does. */
export type SendHttp = (
  url: string,
  init: {
    readonly method: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly signal: AbortSignal;
    readonly body?: string | UploadBody;
    /** Called with the number of bytes of an upload that are sent. */
    readonly onProgress?: (sent: number) => void;
  },
) => Promise<HttpResponse>;

export interface HttpOptions {
  readonly urls: readonly string[];
  readonly token: Token | undefined;
  readonly fetch: SendHttp;
  /** Sends an upload whose progress is reported. */
  readonly upload?: SendHttp;
  readonly timeoutMs: number;
}

interface AnyRequest {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  /** Bytes instead of a body. */
  readonly upload?: UploadBody;
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  readonly bytes?: boolean;
  readonly onProgress?: (sent: number) => void;
}

/** Rounds over all gateways before a request that may be repeated fails. */
const ROUNDS = 2;

const pathOf = (path: string, params: AnyRequest['params'] = {}): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    if (params[name] === undefined)
      throw new ClientError(CLIENT_ERRORS.refused, `the parameter ${name} is missing`);
    return encodeURIComponent(String(params[name]));
  });

const queryOf = (query: AnyRequest['query'] = {}): string => {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  const text = new URLSearchParams(
    given.map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
  return text === '' ? '' : `?${text}`;
};

const bodyOf = ({ body, upload }: AnyRequest) => ({
  sent: upload ?? (body === undefined ? undefined : JSON.stringify(body)),
  media: upload ? 'application/octet-stream' : 'application/json',
});

class HttpCalls {
  readonly #options: HttpOptions;
  #urlIndex = 0;

  constructor(options: HttpOptions) {
    this.#options = options;
  }

  async call(route: RouteFacts, request: AnyRequest = {}): Promise<unknown> {
    const { method, idempotent = false, text: isText = false } = route;
    const path = pathOf(route.path, request.params) + queryOf(request.query);
    const key = request.idempotencyKey ?? (idempotent ? createKey() : undefined);
    const canRepeat = method === 'get' || key !== undefined;
    const response = await this.#send(path, { method, key, request, canRepeat });
    if (response.ok && request.bytes === true) return new Uint8Array(await response.arrayBuffer());
    const text = await response.text();
    if (!response.ok) throw errorOfResponse(response.status, text, response.headers.get('retry-after'));
    if (isText) return text;
    return text === '' ? null : (JSON.parse(text) as unknown);
  }

  #senderOf({ onProgress }: AnyRequest) {
    const { fetch: send, upload = send } = this.#options;
    return onProgress ? { send: upload, progress: { onProgress } } : { send, progress: {} };
  }

  /** Sends a request. One that may be repeated is sent to the next gateway when this one is gone. */
  async #send(
    path: string,
    {
      method,
      key,
      request,
      canRepeat,
    }: { method: string; key: string | undefined; request: AnyRequest; canRepeat: boolean },
  ): Promise<HttpResponse> {
    const { urls } = this.#options;
    const { send, progress } = this.#senderOf(request);
    const token = await readToken(this.#options.token);
    const { signal } = request;
    const { sent, media } = bodyOf(request);
    const headers = {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(sent === undefined ? {} : { 'content-type': media }),
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    };
    const timeout = AbortSignal.timeout(request.timeoutMs ?? this.#options.timeoutMs);
    const init = {
      method: method.toUpperCase(),
      headers,
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      ...(sent === undefined ? {} : { body: sent }),
      ...progress,
    };
    for (let left = canRepeat ? urls.length * ROUNDS : 1; ;) {
      const url = urls[this.#urlIndex % urls.length] ?? '';
      try {
        return await send(url + path, init);
      } catch (cause) {
        if (signal?.aborted) throw cause;
        this.#urlIndex++;
        if (--left === 0 || timeout.aborted)
          throw new ClientError(CLIENT_ERRORS.unreachable, `no gateway answers at ${url}`, { cause });
      }
    }
  }
}

/** Creates a function for each HTTP route. */
export const createHttpClient = (options: HttpOptions): HttpClient => {
  const calls = new HttpCalls(options);
  const routes = Object.entries<RouteFacts>(ROUTES).map(([name, route]) => [
    name,
    (request?: AnyRequest) => calls.call(route, request),
  ]);
  return Object.fromEntries(routes) as unknown as HttpClient;
};

export type { HttpClient, RouteReply, RouteRequest } from './reference.js';
