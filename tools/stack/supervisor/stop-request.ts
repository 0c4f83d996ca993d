import type { Logger } from '@antiphon/observability';
import type { Channel } from './channel.js';

/** Whether, and how urgently, the stack shall stop. */
export interface StopRequest {
  /** Fires at the first wish. */
  readonly signal: AbortSignal;
  /** Resolves at the first wish. */
  readonly wished: Promise<void>;
  /** Fires at the second one: nothing is waited for any more. */
  readonly urgent: AbortSignal;
  request(reason: string, now?: boolean): void;
}

/** Collects everything that means "stop": signals, a message, the loss of whoever holds us in the foreground. */
export const listenForStop = (channel: Channel, logger: Logger): StopRequest => {
  const first = new AbortController();
  const second = new AbortController();
  const wished = new Promise<void>((resolve) =>
    first.signal.addEventListener('abort', () => resolve(), { once: true }),
  );
  let detached = false;

  const request = (reason: string, now = false): void => {
    logger.info({ reason, now }, 'asked to stop');
    if (now || first.signal.aborted) second.abort();
    first.abort(new Error(`the stack was stopped (${reason})`));
  };

  for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => request(name));
  channel.onMessage((message) => {
    if (message.type === 'stop') return request('asked by the terminal', message.now);
    detached = true;
    channel.close();
  });
  channel.onLost(() => {
    if (!detached) request('the terminal that it ran in is gone');
  });
  return { signal: first.signal, urgent: second.signal, wished, request };
};
