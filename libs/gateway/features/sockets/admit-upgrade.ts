import type { IncomingMessage } from 'node:http';
import { TOOLS_PATH } from '@antiphon/contracts/gateway';
import type { Principal } from '@antiphon/contracts/identity';
import { isAppError } from '@antiphon/kernel';
import { retryAfterSeconds } from '@antiphon/service-host';
import type { Authenticator } from '../access/authenticator.js';
import { authenticateHeaders, hasCookie } from '../access/request-guard.js';
import { isOwnPage, judgeHeaders } from '../access/session-cookie.js';
import { EVENTS_PATH } from './events-socket.js';

/** Decision on a WebSocket upgrade. */
export type Admission =
  /** `principal` is null if the client has to authenticate by its first frame. */
  | { readonly status: 101; readonly principal: Principal | null; readonly isForeign: boolean }
  | { readonly status: 401 | 403 | 404 | 429 | 503; readonly reason: string; readonly retryAfter?: number };

/**
 * `/ws/events` is `/ws` with one subscription to events from the beginning. Programs serve tools on
 * `/ws/tools`.
 */
const SOCKET_PATHS: ReadonlySet<string> = new Set(['/ws', EVENTS_PATH, TOOLS_PATH]);

/**
 * Decides an upgrade before the 101 response: path, Host and Origin, bearer token. Without a token
 * in the header the client must send it in its first frame.
 */
export const admitUpgrade = async (
  { url = '', headers, socket }: IncomingMessage,
  authenticator: Authenticator,
): Promise<Admission> => {
  if (!SOCKET_PATHS.has(url.split('?', 1)[0] ?? ''))
    return { status: 404, reason: `no WebSocket at this path; connect to /ws` };
  const verdict = judgeHeaders(headers, authenticator.local !== null, authenticator.allowedOrigins);
  if (!verdict.allowed) return { status: 403, reason: verdict.reason };
  const { isForeign } = verdict;
  if (hasCookie(headers, authenticator) && !isOwnPage(headers))
    return { status: 403, reason: 'a cookie is accepted from the own page of the dashboard only' };
  try {
    const attempt = await authenticateHeaders(headers, socket.remoteAddress, authenticator, isForeign);
    if (attempt === null)
      return { status: 101, principal: isForeign ? null : authenticator.local, isForeign };
    const { principal, retryAfterSeconds: wait } = attempt;
    if (principal) {
      authenticator.limits.chargeRequest(principal);
      return { status: 101, principal, isForeign };
    }
    if (wait > 0) return { status: 429, reason: 'too many failed attempts', retryAfter: wait };
    return { status: 401, reason: 'the token is not valid' };
  } catch (error) {
    if (!isAppError(error)) throw error;
    const retryAfter = retryAfterSeconds(error);
    if (retryAfter === undefined) throw error;
    return { status: error.kind === 'exhausted' ? 429 : 503, reason: error.message, retryAfter };
  }
};
