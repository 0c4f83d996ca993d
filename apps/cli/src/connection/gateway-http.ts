import type { HttpClient, HttpResponse, SendHttp } from '@antiphon/client/http';
import { AppError, transient, type ErrorKind } from '@antiphon/kernel';
import type { GatewayAddress } from './gateway-address.js';

const TIMEOUT_MS = 15_000;
/** Timeout for responses whose size grows with the log. */
export const LONG_TIMEOUT_MS = 600_000;

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

// Importing either module as an ES module, and `fetch`, loads undici: twice the time of the rest of
// a command.
const requesterOf = (url: string) =>
  process.getBuiltinModule(url.startsWith('https:') ? 'node:https' : 'node:http').request;

/** Sends a request of the client without `fetch`. */
const send: SendHttp = (url, { method, headers, body, signal }) =>
  new Promise<HttpResponse>((resolve, reject) => {
    let responded = false;
    const outgoing = requesterOf(url)(url, { method, headers, signal, agent: false }, (response) => {
      responded = true;
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const { statusCode: status = 0 } = response;
        const bytes = Buffer.concat(chunks);
        resolve({
          status,
          ok: status >= 200 && status <= 299,
          headers: { get: (name) => response.headers[name]?.toString() ?? null },
          text: () => Promise.resolve(bytes.toString('utf8')),
          arrayBuffer: () => Promise.resolve(new Uint8Array(bytes).buffer),
        });
      });
    });
    // A gateway that refuses an upload responds before it has all bytes, and then closes.
    outgoing.on('error', (error) => (responded ? undefined : reject(error)));
    outgoing.end(body);
  });

/** Converts an error of the client to the error that sets the exit code. */
const toAppError = (gateway: GatewayAddress, error: unknown): unknown => {
  const { name, code, message, status } = error as Partial<Record<'name' | 'code' | 'message', string>> & {
    readonly status?: number;
  };
  if (name !== 'ClientError' || code === undefined) return error;
  if (code === 'CLIENT.UNREACHABLE') return unreachable(gateway, (error as Error).cause);
  // Another server listens at this address: its text tells more than a parse error would.
  const own = code.startsWith('HTTP.') ? 'CLI.HTTP' : code;
  return new AppError(KIND_OF_STATUS[status ?? 0] ?? 'bug', own, message ?? '');
};

/** Opens the HTTP routes of a gateway. Problem documents are thrown as AppErrors. */
export const openGateway = async (gateway: GatewayAddress): Promise<HttpClient> => {
  const { createHttpClient } = await import('@antiphon/client/http');
  const { url, token } = gateway;
  const routes = createHttpClient({
    urls: [url],
    token: token ?? undefined,
    fetch: send,
    timeoutMs: TIMEOUT_MS,
  });
  const translated = Object.entries<(request?: object) => Promise<unknown>>(
    routes as unknown as Record<string, (request?: object) => Promise<unknown>>,
  ).map(([name, call]) => [
    name,
    (request?: object) =>
      call(request).catch((error: unknown) => {
        throw toAppError(gateway, error);
      }),
  ]);
  return Object.fromEntries(translated) as HttpClient;
};

/** Option `--at` of commands that show one record. */
export interface AtOption {
  readonly at?: string;
}

/** Returns the line that tells how to read the next page, or no line after the last page. */
export const nextPageLine = (nextCursor: string | null): string[] =>
  nextCursor === null ? [] : [`more: --cursor ${nextCursor}`];
