import { get } from 'node:http';
import { UserError } from '@antiphon/bootstrap/user-error';
import { sleep } from '@antiphon/kernel';
import { endedProcesses } from './stack-json.js';
import type { StackJson } from './stack-json.js';

const ANSWER_MS = 3_000;
const POLL_MS = 50;
const SHOWN_CHARACTERS = 300;

/** Reads `/readyz` of a gateway. Returns null if it is ready, else the reason why it is not. */
const askGateway = (url: string): Promise<string | null> =>
  new Promise((resolve) => {
    const request = get(`${url}/readyz`, { agent: false, timeout: ANSWER_MS }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (text = (text + chunk).slice(0, SHOWN_CHARACTERS)));
      response.on('error', (error) => resolve(error.message));
      response.on('end', () => resolve(response.statusCode === 200 ? null : detailOf(text)));
    });
    request.on('timeout', () => request.destroy(new Error(`no response within ${ANSWER_MS / 1000} s`)));
    request.on('error', (error: NodeJS.ErrnoException) => resolve(error.message || String(error.code)));
  });

const detailOf = (text: string): string => /"detail":"((?:[^"\\]|\\.)*)/.exec(text)?.[1] ?? text;

/**
 * Returns null if a stack is ready now, else the reason. Processes and their gateways are asked:
 * `stack.json` may be older than their ends.
 */
export const askReadiness = async (stack: StackJson): Promise<string | null> => {
  if (stack.state !== 'ready') return `it is ${stack.state}`;
  const ended = endedProcesses(stack);
  if (ended.length > 0) return `these processes have ended: ${ended.join(', ')}`;
  const entries = [...Object.values(stack.services).flat(), ...Object.values(stack.engines)];
  const waiting = entries.filter(({ state }) => state !== 'ready');
  if (waiting.length > 0) return `${waiting.length} of its processes are starting`;
  const { gateways } = stack.urls;
  if (gateways.length === 0) return 'no gateway runs';
  const answers = await Promise.all(gateways.map(askGateway));
  const failed = answers.findIndex((answer) => answer !== null);
  return failed === -1 ? null : `the gateway at ${gateways[failed] ?? ''} says: ${answers[failed] ?? ''}`;
};

/**
 * Waits until the gateways of a stack are ready. Throws a UserError with the last reason after
 * `timeoutMs`.
 */
export const waitUntilReady = async (
  read: () => StackJson | null,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal?: AbortSignal | undefined },
): Promise<StackJson> => {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const stack = read();
    const reason = stack === null ? 'it has no stack.json' : await askReadiness(stack);
    if (stack !== null && reason === null) return stack;
    if (signal?.aborted) throw new UserError('stopped waiting for it', { exitCode: 130 });
    if (performance.now() > deadline)
      throw new UserError(
        `the stack of this home runs, but it is not ready after ${timeoutMs / 1000} s: ${reason ?? ''}.\n` +
          'What to do: read the logs in its folder `logs`, or end it with `npm stop` and start it again.',
      );
    await sleep(POLL_MS);
  }
};
