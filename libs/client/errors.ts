/** Codes of errors of the client itself. All other codes are the gateway's (docs/errors.md). */
export const CLIENT_ERRORS = {
  unreachable: 'CLIENT.UNREACHABLE',
  disconnected: 'CLIENT.DISCONNECTED',
  closed: 'CLIENT.CLOSED',
  tooLarge: 'CLIENT.TOO_LARGE',
  refused: 'CLIENT.REFUSED',
  cancelled: 'CLIENT.TURN_CANCELLED',
  failed: 'CLIENT.TURN_FAILED',
} as const;

export interface ClientErrorDetails {
  /** JSON-RPC code of a WebSocket error. */
  readonly rpc?: number | undefined;
  /** Status of an HTTP error. */
  readonly status?: number | undefined;
  /** Data of the gateway's error, such as `fields` or `lastOffset`. */
  readonly data?: Readonly<Record<string, unknown>> | undefined;
  /** Delay after which the same request may succeed, ms. */
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/** Error of a request, a stream or the connection. `code` is stable; `message` is for people. */
export class ClientError extends Error {
  override readonly name = 'ClientError';
  readonly rpc: number | undefined;
  readonly status: number | undefined;
  readonly data: Readonly<Record<string, unknown>>;
  readonly retryAfterMs: number | undefined;

  constructor(
    readonly code: string,
    message: string,
    { rpc, status, data = {}, retryAfterMs, cause }: ClientErrorDetails = {},
  ) {
    super(message, { cause });
    this.rpc = rpc;
    this.status = status;
    this.data = data;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Error object of a JSON-RPC response. */
export interface RpcErrorBody {
  readonly code: number;
  readonly message: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

/** JSON-RPC code of an engine that is down: the same request may succeed later. */
const ENGINE_DOWN = -32_053;

/** Returns true for a refusal that ends by itself. */
export const isTransient = ({ rpc }: ClientError): boolean => rpc === ENGINE_DOWN;

const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

const retryAfterOf = (data: Readonly<Record<string, unknown>>): number | undefined => {
  const seconds = numberOf(data['retryAfterSeconds']);
  return numberOf(data['retryAfterMs']) ?? (seconds === undefined ? undefined : seconds * 1_000);
};

/** Returns the error of a WebSocket response. */
export const errorOfRpc = ({ code: rpc, message, data = {} }: RpcErrorBody): ClientError => {
  const code = typeof data['code'] === 'string' ? data['code'] : `RPC.${rpc}`;
  return new ClientError(code, message, { rpc, data, retryAfterMs: retryAfterOf(data) });
};

/** Returns the error of an HTTP response: a problem document, or another server's text. */
export const errorOfResponse = (status: number, text: string, retryAfter: string | null): ClientError => {
  let problem: Record<string, unknown> = {};
  try {
    problem = JSON.parse(text) as Record<string, unknown>;
  } catch {
    problem = { detail: `the server responded with ${status}: ${text.slice(0, 200)}` };
  }
  const { code, detail } = problem;
  const seconds = Number(retryAfter ?? Number.NaN);
  return new ClientError(String(code ?? `HTTP.${status}`), String(detail ?? `status ${status}`), {
    status,
    data: problem,
    retryAfterMs: Number.isFinite(seconds) ? seconds * 1_000 : undefined,
  });
};
