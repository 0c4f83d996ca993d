import { AppError, transient, type ErrorKind } from '@antiphon/kernel';
import type { GatewayAddress } from './gateway-address.js';

const TIMEOUT_MS = 15_000;

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

/** GETs a JSON document from the gateway; its problem documents become AppErrors. */
export const getJson = async (gateway: GatewayAddress, path: string): Promise<unknown> => {
  const headers = gateway.token === null ? {} : { authorization: `Bearer ${gateway.token}` };
  const answer = await fetch(gateway.url + path, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) }).catch(
    (cause: unknown) => {
      throw unreachable(gateway, cause);
    },
  );
  const text = await answer.text();
  if (!answer.ok) throw problemOf(answer.status, text);
  return JSON.parse(text) as unknown;
};
