import { AppError, transient, type ErrorKind } from '@antiphon/kernel';
import type { GatewayAddress } from './gateway-address.js';

const TIMEOUT_MS = 15_000;
/** Timeout for responses whose size grows with the log. */
const LONG_TIMEOUT_MS = 600_000;

/** Kind of the error that each status of the gateway stands for. */
export const KIND_OF_STATUS: Readonly<Record<number, ErrorKind>> = {
  400: 'invalid',
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'not_found',
  409: 'conflict',
  422: 'rejected',
  429: 'exhausted',
  503: 'transient',
};

/** Creates the error for a gateway that does not respond: exit code 3. */
export const unreachable = ({ url }: GatewayAddress, cause: unknown): AppError =>
  transient(
    'CLI.UNREACHABLE',
    `cannot reach the gateway at ${url}. What to do: start it with \`npm start\`, or name another one with --url or ANTIPHON_URL`,
    { cause },
  );

const problemOf = (status: number, text: string): AppError => {
  let problem: { code?: string; detail?: string } = {};
  try {
    problem = JSON.parse(text) as typeof problem;
  } catch {
    // Another server listens at this address: its text tells more than a parse error would.
    problem = { detail: `the server responded with ${status}: ${text.slice(0, 200)}` };
  }
  return new AppError(
    KIND_OF_STATUS[status] ?? 'bug',
    problem.code ?? 'CLI.HTTP',
    problem.detail ?? `status ${status}`,
  );
};

interface RequestOptions {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly body?: unknown;
  /** Bytes instead of a body. */
  readonly upload?: Buffer;
  /** The gateway treats requests with the same key as one request. */
  readonly idempotencyKey?: string;
}

const headersOf = (
  { token }: GatewayAddress,
  { body, upload, idempotencyKey }: RequestOptions,
): Record<string, string> => ({
  ...(token === null ? {} : { authorization: `Bearer ${token}` }),
  ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  ...(upload
    ? { 'content-type': 'application/octet-stream', 'content-length': String(upload.byteLength) }
    : {}),
  ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
});

interface Sent {
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

interface HttpResponse {
  readonly status: number;
  readonly body: Buffer;
}

// Importing either module as an ES module, and `fetch`, loads undici: twice the time of the rest of
// a command.
const requesterOf = (url: string) =>
  process.getBuiltinModule(url.startsWith('https:') ? 'node:https' : 'node:http').request;

const send = (url: string, options: RequestOptions & Sent): Promise<HttpResponse> =>
  new Promise((resolve, reject) => {
    const { method, headers, body, upload, timeoutMs } = options;
    const signal = AbortSignal.timeout(timeoutMs);
    let responded = false;
    const outgoing = requesterOf(url)(url, { method, headers, signal, agent: false }, (response) => {
      responded = true;
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks) }));
    });
    // A gateway that refuses an upload responds before it has all bytes, and then closes.
    outgoing.on('error', (error) => (responded ? undefined : reject(error)));
    outgoing.end(upload ?? (body === undefined ? undefined : JSON.stringify(body)));
  });

const request = async (
  gateway: GatewayAddress,
  path: string,
  options: RequestOptions,
  timeoutMs = TIMEOUT_MS,
): Promise<Buffer> => {
  const headers = headersOf(gateway, options);
  const { status, body } = await send(gateway.url + path, { ...options, headers, timeoutMs }).catch(
    (cause: unknown) => {
      throw unreachable(gateway, cause);
    },
  );
  if (status < 200 || status > 299) throw problemOf(status, body.toString('utf8'));
  return body;
};

/** PUTs bytes and parses the JSON response. */
export const putBytes = async <T>(gateway: GatewayAddress, path: string, upload: Buffer): Promise<T> =>
  JSON.parse(
    (await request(gateway, path, { method: 'PUT', upload }, LONG_TIMEOUT_MS)).toString('utf8'),
  ) as T;

/**
 * Sends a request and parses its JSON response. Throws the gateway's problem documents as
 * AppErrors.
 */
export const requestJson = async <T>(
  gateway: GatewayAddress,
  path: string,
  options: RequestOptions,
): Promise<T> => {
  const text = (await request(gateway, path, options)).toString('utf8');
  return (text === '' ? null : JSON.parse(text)) as T;
};

/** GETs a text of any length. */
export const getText = async (gateway: GatewayAddress, path: string): Promise<string> =>
  (await getBytes(gateway, path)).toString('utf8');

/** GETs bytes of any length. */
export const getBytes = (gateway: GatewayAddress, path: string): Promise<Buffer> =>
  request(gateway, path, { method: 'GET' }, LONG_TIMEOUT_MS);

/** GETs a JSON document from the gateway. */
export const getJson = <T>(gateway: GatewayAddress, path: string): Promise<T> =>
  requestJson<T>(gateway, path, { method: 'GET' });

/** Option `--at` of commands that show one record. */
export interface AtOption {
  readonly at?: string;
}

/** Returns the path of a read as of a position, or of the present. */
export const pathAt = (path: string, { at }: AtOption): string =>
  at === undefined ? path : `${path}${path.includes('?') ? '&' : '?'}at=${encodeURIComponent(at)}`;

/** Returns the line that tells how to read the next page, or no line after the last page. */
export const nextPageLine = (nextCursor: string | null): string[] =>
  nextCursor === null ? [] : [`more: --cursor ${nextCursor}`];
