import { parentPort } from 'node:worker_threads';
import { isAppError } from '@antiphon/kernel';
import type { PlainError, ThreadMessage } from './worker-thread.js';

type Functions = Readonly<Record<string, (input: unknown) => unknown>>;
type Order =
  { readonly load: string } | { readonly module: string; readonly name: string; readonly input: unknown };

const modules = new Map<string, Functions>();

const toPlain = (error: unknown): PlainError => {
  if (!isAppError(error))
    return { code: '', message: String(error instanceof Error ? error.stack : error), data: {} };
  const { kind, code, message, data, cause } = error;
  return { kind, code, message, data, ...(cause instanceof Error ? {} : { cause }) };
};

const run = async (module: string, name: string, input: unknown): Promise<ThreadMessage> => {
  try {
    const job = modules.get(module)?.[name];
    if (!job) throw new Error(`there is no job "${name}"`);
    return { value: await job(input) };
  } catch (error) {
    return { error: toPlain(error) };
  }
};

const load = async (module: string): Promise<ThreadMessage> => {
  const { jobs } = (await import(module)) as { readonly jobs: Functions };
  modules.set(module, jobs);
  return { loaded: module };
};

// A module that cannot be loaded ends the thread.
parentPort?.on('message', (order: Order) => {
  const message = 'load' in order ? load(order.load) : run(order.module, order.name, order.input);
  void message.then((reply) => parentPort?.postMessage(reply));
});
