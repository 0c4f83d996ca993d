import { sleep } from '@antiphon/kernel';
import { Counterexample } from './send-turn.js';

/** A run that has ended, as its client knows it. */
export interface EndedRun {
  readonly key: string;
  readonly runId: string;
  readonly status: string;
  /** Whether the client asked for its cancellation. */
  readonly cancelRequested: boolean;
}

interface RunView {
  readonly id: string;
  readonly status: string;
}

export interface RunCommand {
  readonly key: string;
  /** Definition of a workflow. */
  readonly workflow: unknown;
  readonly inputs?: Readonly<Record<string, string>>;
  /** Requests the run's cancellation as soon as it is accepted. */
  readonly cancel?: boolean;
}

const RETRY_MS = 250;
const REQUEST_MS = 45_000;
const OPEN = new Set(['running', 'cancelling']);

type Answer = { readonly run: RunView } | { readonly retry: string };

/**
 * Sends one request. Returns the cause as `retry` when it may be sent again; throws when it may
 * not.
 */
const request = async (url: string, init: RequestInit): Promise<Answer> => {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(REQUEST_MS) }).catch(String);
  if (typeof response === 'string') return { retry: response };
  const text = await response.text().catch(String);
  if (response.status === 503 || response.status === 429) return { retry: text };
  if (!response.ok) throw new Counterexample(`${init.method ?? 'GET'} ${url}: ${response.status} ${text}`);
  try {
    return { run: JSON.parse(text) as RunView };
  } catch {
    return { retry: 'the response was cut off' };
  }
};

const requestWithRetry = async (url: string, init: RequestInit, deadline: number): Promise<RunView> => {
  for (;;) {
    const answer = await request(url, init);
    if ('run' in answer) return answer.run;
    if (performance.now() > deadline) throw new Counterexample(`no response from ${url}: ${answer.retry}`);
    await sleep(RETRY_MS);
  }
};

/**
 * Starts a run, retries until it is accepted, and polls it until it ends. Throws a Counterexample
 * for a refusal that is permanent, and after `deadlineMs`.
 */
export const runToEnd = async (
  gateway: () => string,
  { key, workflow, inputs = {}, cancel = false }: RunCommand,
  deadlineMs = 240_000,
): Promise<EndedRun> => {
  const deadline = performance.now() + deadlineMs;
  const runs = (): string => `${gateway()}/api/v1/runs`;
  const headers = { 'content-type': 'application/json', 'idempotency-key': key };
  const body = JSON.stringify({ workflow, inputs });
  const { id } = await requestWithRetry(runs(), { method: 'POST', headers, body }, deadline);
  if (cancel) await requestWithRetry(`${runs()}/${id}/cancel`, { method: 'POST' }, deadline);
  for (;;) {
    const { status } = await requestWithRetry(`${runs()}/${id}`, {}, deadline);
    if (!OPEN.has(status)) return { key, runId: id, status, cancelRequested: cancel };
    if (performance.now() > deadline) throw new Counterexample(`run ${id} (key ${key}) is still ${status}`);
    await sleep(RETRY_MS);
  }
};
