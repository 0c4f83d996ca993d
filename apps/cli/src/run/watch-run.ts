import { setTimeout as sleep } from 'node:timers/promises';
import type { RunEvent } from '@antiphon/contracts/agent';
import { encodeCursor } from '@antiphon/contracts/log';
import type { GatewayAddress } from '../connection/gateway-address.js';
import { getJson } from '../connection/http-client.js';
import type { Output } from '../output/print.js';

const POLL_MS = 300;

type Logged = RunEvent & { readonly recordedAt: string };
interface Page {
  readonly events: readonly (Logged & { readonly position: number })[];
  readonly nextCursor: string | null;
}

/** What a line says of an event; what a task wrote is shown by `run show`. */
const describe = (event: Logged): string => {
  const { type } = event;
  switch (type) {
    case 'RunStarted':
      return `run ${event.data.runId} started: ${event.data.definition.name}`;
    case 'TaskReady':
      return `${event.data.nodeId}: ready`;
    case 'TaskStarted':
      return `${event.data.nodeId}: ${event.data.agentId} works on it (session ${event.data.sessionId})`;
    case 'TaskAttemptFailed':
      return `${event.data.nodeId}: ${event.data.code}, it will be tried again: ${event.data.message}`;
    case 'TaskCompleted':
      return `${event.data.nodeId}: completed, ${event.data.output.length} characters`;
    case 'TaskFailed':
      return `${event.data.nodeId}: failed, ${event.data.code}: ${event.data.message}`;
    case 'TaskCancelled':
      return `${event.data.nodeId}: cancelled`;
    case 'RunCancelRequested':
      return 'cancelling';
    case 'RunCompleted':
      return 'completed';
    case 'RunFailed':
      return `failed: ${event.data.failedNodes.join(', ')}`;
    case 'RunCancelled':
      return 'cancelled';
  }
};

const ENDS: ReadonlySet<RunEvent['type']> = new Set(['RunCompleted', 'RunFailed', 'RunCancelled']);

/** Prints a run's events, from its first, until it has ended. */
export const watchRun = async (gateway: GatewayAddress, runId: string, output: Output): Promise<void> => {
  let after = 0;
  for (;;) {
    const query = new URLSearchParams({ stream: `run-${runId}`, cursor: encodeCursor(after) });
    const { events } = (await getJson(gateway, `/api/v1/events?${query}`)) as Page;
    for (const event of events) output.line(event, `${event.recordedAt}  ${describe(event)}`);
    if (events.some(({ type }) => ENDS.has(type))) return;
    after = events.at(-1)?.position ?? after;
    if (events.length === 0) await sleep(POLL_MS);
  }
};
