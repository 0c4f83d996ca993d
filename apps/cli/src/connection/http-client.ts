import { AppError, transient, type ErrorKind } from '@antiphon/kernel';
import type { GatewayAddress } from './gateway-address.js';

const TIMEOUT_MS = 15_000;
/** For answers that are as long as what they tell of. */
const LONG_TIMEOUT_MS = 600_000;

const KIND_OF: Readonly<Record<number, ErrorKind>> = {
  400: 'invalid',
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'not_found',
  409: 'conflict',
  422: 'rejected',
  429: 'exhausted',
  503: 'transient',
};

/** Nobody answers at the gateway's address: exit code 3. */
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
    // Not ours: whatever answers there, its text says more than a parse error would.
    problem = { detail: `the server answered ${status}: ${text.slice(0, 200)}` };
  }
  return new AppError(
    KIND_OF[status] ?? 'bug',
    problem.code ?? 'CLI.HTTP',
    problem.detail ?? `status ${status}`,
  );
};

interface Asked {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly body?: unknown;
  /** The same key again is the same request. */
  readonly idempotencyKey?: string;
}

const headersOf = ({ token }: GatewayAddress, { body, idempotencyKey }: Asked): Record<string, string> => ({
  ...(token === null ? {} : { authorization: `Bearer ${token}` }),
  ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
});

const ask = async (
  gateway: GatewayAddress,
  path: string,
  asked: Asked,
  timeoutMs = TIMEOUT_MS,
): Promise<string> => {
  const answer = await fetch(gateway.url + path, {
    method: asked.method,
    headers: headersOf(gateway, asked),
    signal: AbortSignal.timeout(timeoutMs),
    ...(asked.body === undefined ? {} : { body: JSON.stringify(asked.body) }),
  }).catch((cause: unknown) => {
    throw unreachable(gateway, cause);
  });
  const text = await answer.text();
  if (!answer.ok) throw problemOf(answer.status, text);
  return text;
};

/** Asks the gateway for a JSON document; its problem documents become AppErrors. */
export const askJson = async (gateway: GatewayAddress, path: string, asked: Asked): Promise<unknown> => {
  const text = await ask(gateway, path, asked);
  return text === '' ? null : (JSON.parse(text) as unknown);
};

/** GETs a text of any length. */
export const getText = (gateway: GatewayAddress, path: string): Promise<string> =>
  ask(gateway, path, { method: 'GET' }, LONG_TIMEOUT_MS);

/** GETs a JSON document from the gateway. */
export const getJson = (gateway: GatewayAddress, path: string): Promise<unknown> =>
  askJson(gateway, path, { method: 'GET' });
