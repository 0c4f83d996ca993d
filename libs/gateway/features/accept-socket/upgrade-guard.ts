import type { IncomingMessage } from 'node:http';
import { judgeOrigin } from '@antiphon/gateway-domain';
import { bearerToken, type TokenGate } from '../authenticate/token-gate.js';

export type Admission =
  | { readonly status: 101; readonly authenticated: boolean }
  | { readonly status: 401 | 403 | 404 | 429; readonly reason: string; readonly retryAfter?: number };

/** True when any proxy header is there, whatever it says. */
export const isForwarded = (headers: IncomingMessage['headers']): boolean =>
  Object.keys(headers).some((name) => name === 'forwarded' || name.startsWith('x-forwarded-'));

/** The first header value; a doubled `Host` or `Origin` never reaches here (Node refuses or joins it). */
const single = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value.join() : value;

/**
 * Decides an upgrade before the 101: path, Host and Origin, then who guesses too often, then a bearer token.
 * Without a token in the header the first frame has to bring it.
 */
export const admitUpgrade = (request: IncomingMessage, gate: TokenGate): Admission => {
  const { headers, socket } = request;
  const path = (request.url ?? '').split('?', 1)[0];
  if (path !== '/ws') return { status: 404, reason: `no WebSocket at this path; connect to /ws` };
  const verdict = judgeOrigin(
    { host: headers.host, origin: single(headers.origin), forwarded: isForwarded(headers) },
    gate.required,
  );
  if (!verdict.allowed) return { status: 403, reason: verdict.reason };
  if (!gate.required) return { status: 101, authenticated: true };
  const address = socket.remoteAddress ?? '';
  const retryAfter = gate.retryAfterSeconds(address);
  if (retryAfter > 0) return { status: 429, reason: 'too many failed attempts', retryAfter };
  if (headers.authorization === undefined) return { status: 101, authenticated: false };
  const token = bearerToken(headers.authorization);
  if (token !== undefined && gate.accepts(token)) return { status: 101, authenticated: true };
  gate.recordFailure(address);
  return { status: 401, reason: 'the token is not valid' };
};
