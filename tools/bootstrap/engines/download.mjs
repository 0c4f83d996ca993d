import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';

const SILENCE_MS = 20_000;
const MIB = 1024 * 1024;

/** A signal that fires when nothing has arrived for a while, and the means to say that something has. */
const watchSilence = (outer) => {
  const controller = new AbortController();
  const fail = () => controller.abort(new Error(`nothing came for ${SILENCE_MS / 1000} s`));
  const timer = setTimeout(fail, SILENCE_MS);
  const signal = outer === undefined ? controller.signal : AbortSignal.any([outer, controller.signal]);
  return { signal, heard: () => timer.refresh(), stop: () => clearTimeout(timer) };
};

const rootCause = (error) => {
  let cause = error;
  while (cause.cause instanceof Error) cause = cause.cause;
  return cause.message || cause.code || String(cause);
};

const request = async (url, signal) => {
  let answer;
  try {
    answer = await fetch(url, { signal, redirect: 'follow' });
  } catch (error) {
    throw new Error(`${url}: ${rootCause(error)}`, { cause: error });
  }
  if (!answer.ok) throw new Error(`${url}: the server answered ${answer.status}`);
  return answer;
};

export const downloadText = async (url, { signal } = {}) => {
  const silence = watchSilence(signal);
  try {
    return await (await request(url, silence.signal)).text();
  } finally {
    silence.stop();
  }
};

/** Bytes to come, 0 when unknown: a content encoding makes the header count other bytes than we get. */
const sizeOf = (answer) =>
  answer.headers.has('content-encoding') ? 0 : Number(answer.headers.get('content-length') ?? 0);

/** Downloads a file and resolves to its SHA-256; a transfer that is cut short rejects. */
export const downloadFile = async (url, target, { signal, onProgress = () => {} } = {}) => {
  const silence = watchSilence(signal);
  try {
    const answer = await request(url, silence.signal);
    const total = sizeOf(answer);
    const hash = createHash('sha256');
    let received = 0;
    const count = new Transform({
      transform(chunk, _encoding, done) {
        silence.heard();
        hash.update(chunk);
        received += chunk.length;
        onProgress(
          `${(received / MIB).toFixed(0)}${total === 0 ? '' : ` of ${(total / MIB).toFixed(0)}`} MiB`,
        );
        done(null, chunk);
      },
    });
    await pipeline(Readable.fromWeb(answer.body), count, createWriteStream(target)).catch((error) => {
      throw error.code === 'ENOSPC'
        ? error
        : new Error(`${url}: the download was cut off (${rootCause(error)})`, { cause: error });
    });
    if (total !== 0 && received !== total)
      throw new Error(`${url}: the download was cut off (${received} of ${total} bytes)`);
    return hash.digest('hex');
  } finally {
    silence.stop();
  }
};
