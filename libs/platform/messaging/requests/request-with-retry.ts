import { isAppError } from '@antiphon/kernel';
import type { RequestOptions } from './request-client.js';

/** Far longer than an answer takes, far shorter than a turn may stand still for a process that has died. */
const SOON_MS = 2_000;

/**
 * Asks for what may be asked for twice. A request that was on its way to a process that died is answered by nobody, so
 * it is sent again soon, to whoever is there by then; that one has all the time that its contract gives.
 */
export const requestWithRetry = async <T>(ask: (options: RequestOptions) => Promise<T>): Promise<T> => {
  try {
    return await ask({ timeoutMs: SOON_MS });
  } catch (error) {
    if (!isAppError(error) || error.code !== 'MESSAGING.TIMEOUT') throw error;
    return ask({});
  }
};
