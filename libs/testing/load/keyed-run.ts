import { setTimeout as pause } from 'node:timers/promises';
import { Counterexample } from './counterexample.js';

export interface TakenRun {
  readonly key: string;
  readonly runId: string;
  readonly status: string;
}

interface Shown {
  readonly id: string;
  readonly status: string;
}

export interface RunCommand {
  readonly key: string;
  /** A workflow's definition. */
  readonly workflow: unknown;
  readonly inputs?: Readonly<Record<string, string>>;
  /** Cancels it as soon as it is accepted. */
  readonly cancel?: boolean;
}

const RETRY_MS = 250;
const OPEN = new Set(['running', 'cancelling']);

type Answer = { readonly run: Shown } | { readonly again: string };

/** Answers what may be asked again as `again`; throws what may not. */
const ask = async (url: string, init: RequestInit): Promise<Answer> => {
  const answer = await fetch(url, { ...init, signal: AbortSignal.timeout(45_000) }).catch((error: unknown) =>
    String(error),
  );
  if (typeof answer === 'string') return { again: answer };
  const text = await answer.text().catch(String);
  if (answer.status === 503 || answer.status === 429) return { again: text };
  if (!answer.ok) throw new Counterexample(`${init.method ?? 'GET'} ${url}: ${answer.status} ${text}`);
  try {
    return { run: JSON.parse(text) as Shown };
  } catch {
    return { again: 'the answer was cut off' };
  }
};

/** Asks until there is an answer. */
const insist = async (url: string, init: RequestInit, deadline: number): Promise<Shown> => {
  for (let last = ''; ;) {
    const answer = await ask(url, init);
    if ('run' in answer) return answer.run;
    last = answer.again;
    if (performance.now() > deadline) throw new Counterexample(`no answer from ${url}: ${last}`);
    await pause(RETRY_MS);
  }
};

/**
 * Starts a run until it is accepted, and looks at it until it has ended, as a careful client does. Throws a
 * Counterexample for a refusal that cannot pass, and after `deadlineMs`.
 */
export const carryOutRun = async (
  gateway: () => string,
  { key, workflow, inputs = {}, cancel = false }: RunCommand,
  deadlineMs = 240_000,
): Promise<TakenRun> => {
  const deadline = performance.now() + deadlineMs;
  const runs = (): string => `${gateway()}/api/v1/runs`;
  const headers = { 'content-type': 'application/json', 'idempotency-key': key };
  const body = JSON.stringify({ workflow, inputs });
  const { id } = await insist(runs(), { method: 'POST', headers, body }, deadline);
  if (cancel) await insist(`${runs()}/${id}/cancel`, { method: 'POST' }, deadline);
  for (;;) {
    const { status } = await insist(`${runs()}/${id}`, {}, deadline);
    if (!OPEN.has(status)) return { key, runId: id, status };
    if (performance.now() > deadline) throw new Counterexample(`run ${id} (key ${key}) is still ${status}`);
    await pause(RETRY_MS);
  }
};
