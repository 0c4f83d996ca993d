import { setTimeout as wait } from 'node:timers/promises';

/** Delay before a client repeats a request that broke, ms. */
const REPEAT_MS = 20;

/** Repeats a request until it has a response, or until the signal aborts. */
export const repeatUntilDone = async (request, signal) => {
  for (;;) {
    signal.throwIfAborted();
    try {
      const response = await request();
      if (response.ok) return await response.json();
      await response.body?.cancel();
    } catch {
      // The connection broke, or nothing listens yet.
    }
    await wait(REPEAT_MS, undefined, { signal });
  }
};

/**
 * Runs a turn at a host: it is accepted once, and its end is asked for until it is known. Each
 * request that breaks is repeated with the same id.
 */
export const runHostTurn = async (hostUrl, id, content, signal) => {
  const body = JSON.stringify({ id, content });
  const headers = { 'content-type': 'application/json' };
  await repeatUntilDone(() => fetch(`${hostUrl}/turns`, { method: 'POST', headers, body, signal }), signal);
  return repeatUntilDone(() => fetch(`${hostUrl}/turns/${id}`, { signal }), signal);
};
