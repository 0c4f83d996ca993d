import { Client, Connection } from '@temporalio/client';
import type { WorkflowExecutionInfo } from '@temporalio/client';
import type { TestStack } from '../engines/start-stack.js';

/** Maximum size of a history in tests, bytes. Temporal warns from 10 MB on, and fails at 50 MB. */
export const HISTORY_BYTES = 2_000_000;

export interface HistorySize {
  readonly workflowId: string;
  readonly type: string;
  readonly bytes: number;
  readonly events: number;
}

export interface Histories {
  readonly histories: number;
  readonly largest: HistorySize;
}

/** Queries for all workflows. Temporal lists those of its own schedules only on request. */
const QUERIES = ['', "TemporalNamespaceDivision = 'TemporalScheduler'"];
const NONE: HistorySize = { workflowId: '', type: '', bytes: 0, events: 0 };

/** Describes one execution: the list lags, and lacks the size of open ones. */
const sizeOf = async (client: Client, { workflowId, runId }: WorkflowExecutionInfo): Promise<HistorySize> => {
  const handle = client.workflow.getHandle(workflowId, runId);
  const { type, historySize = 0, historyLength } = await handle.describe();
  return { workflowId, type, bytes: historySize, events: historyLength };
};

const sizesOf = async (client: Client, query: string): Promise<HistorySize[]> => {
  const sizes: HistorySize[] = [];
  for await (const execution of client.workflow.list({ query })) sizes.push(await sizeOf(client, execution));
  return sizes;
};

/** Reads the sizes of all histories that Temporal stores for a stack. */
export const readHistories = async ({
  temporalAddress,
}: Pick<TestStack, 'temporalAddress'>): Promise<Histories> => {
  const connection = await Connection.connect({ address: temporalAddress });
  const client = new Client({ connection, namespace: 'antiphon' });
  try {
    const sizes = (await Promise.all(QUERIES.map((query) => sizesOf(client, query)))).flat();
    const largest = sizes.reduce((most, size) => (size.bytes > most.bytes ? size : most), NONE);
    return { histories: sizes.length, largest };
  } finally {
    await connection.close();
  }
};
