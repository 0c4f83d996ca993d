import type { Readable } from 'node:stream';
import { brokenAnswer, cutAnswer, unreachable } from './failure.js';
import type { Flight } from './flight.js';
import { createServerEvents } from './server-events.js';
import type { ServerEvent } from './server-events.js';

/** After the model has finished, a well-behaved stream has this little left; more is not worth the connection. */
const MAX_LEFTOVER_BYTES = 64 * 1024;

const guardSize = (flight: Flight): ((bytes: number) => void) => {
  let total = 0;
  return (bytes) => {
    total += bytes;
    flight.received();
    if (total > flight.limits.maxAnswerBytes)
      flight.fail(brokenAnswer(`the provider's answer is over ${flight.limits.maxAnswerBytes} bytes`));
  };
};

/** Lets the rest of a finished answer run off, so that its connection can carry the next call. */
const runOff = (incoming: Readable, flight: Flight): void => {
  let left = MAX_LEFTOVER_BYTES;
  const giveUp = setTimeout(() => incoming.destroy(), flight.limits.afterFinishMs);
  giveUp.unref();
  incoming.removeAllListeners('data');
  incoming.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) incoming.destroy();
  });
  incoming.once('close', () => clearTimeout(giveUp));
  incoming.resume();
};

/**
 * Reads a streamed answer to its end: sized, timed, and rejected with the flight's own failure, or with what `onEvent`
 * throws. `onEvent` is called within the read of the socket that brought the event.
 */
export const readEvents = (
  incoming: Readable,
  flight: Flight,
  onEvent: (event: ServerEvent) => void,
): Promise<void> =>
  new Promise((resolve, reject) => {
    const count = guardSize(flight);
    const events = createServerEvents(onEvent);
    let open = true;
    const close = (error?: unknown): void => {
      if (!open) return;
      open = false;
      const why = flight.failure ?? error;
      if (why === undefined) resolve();
      else reject(why);
    };
    const breakOff = (error: unknown): void => {
      close(error);
      if (flight.finished) runOff(incoming, flight);
      else incoming.destroy();
    };
    incoming.on('data', (chunk: Buffer) => {
      count(chunk.length);
      if (!open) return;
      try {
        events.take(chunk);
      } catch (error) {
        breakOff(error);
      }
    });
    incoming.once('end', () => close());
    incoming.on('error', (error) => {
      if (!flight.finished) flight.fail(cutAnswer(error));
      close();
    });
    flight.onStop(() => close());
  });

/**
 * Reads a body of at most `limit` bytes into memory. With `cut`, what is beyond the limit, or does not come, is
 * left out; without, it fails the flight, and the promise rejects with its failure.
 */
export const readBody = (
  incoming: Readable,
  flight: Flight,
  { limit, cut }: { limit: number; cut: boolean },
): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const finish = (): void => resolve(Buffer.concat(chunks).subarray(0, limit));
    incoming.on('data', (chunk: Buffer) => {
      flight.received();
      chunks.push(chunk);
      size += chunk.length;
      if (size <= limit) return;
      if (!cut) flight.fail(brokenAnswer(`the provider's answer is over ${limit} bytes`));
      finish();
      incoming.destroy();
    });
    incoming.once('end', finish);
    incoming.on('error', (error) => flight.fail(cutAnswer(error)));
    flight.onStop(() => (cut ? finish() : reject(flight.failure ?? unreachable(flight.dispatched))));
  });
