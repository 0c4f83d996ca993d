import { parentPort, workerData } from 'node:worker_threads';
import { isAppError } from '@antiphon/kernel';
import type { PlainError, ThreadMessage } from './worker-thread.js';

const { module } = workerData as { readonly module: string };
const { jobs } = (await import(module)) as {
  readonly jobs: Readonly<Record<string, (input: unknown) => unknown>>;
};

const toPlain = (error: unknown): PlainError => {
  if (!isAppError(error))
    return { code: '', message: String(error instanceof Error ? error.stack : error), data: {} };
  const { kind, code, message, data } = error;
  return { kind, code, message, data };
};

const send = (message: ThreadMessage): void => parentPort?.postMessage(message);

const run = async (name: string, input: unknown): Promise<ThreadMessage> => {
  try {
    const job = jobs[name];
    if (!job) throw new Error(`there is no job "${name}"`);
    return { value: await job(input) };
  } catch (error) {
    return { error: toPlain(error) };
  }
};

parentPort?.on('message', ({ name, input }: { readonly name: string; readonly input: unknown }) => {
  void run(name, input).then(send);
});
send({ ready: true });
