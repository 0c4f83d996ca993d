import { transient } from '@antiphon/kernel';
import type { Platform } from './platform.js';

/** Where the house's workflows will live (contract §6). */
const NAMESPACE = 'antiphon';
const DEADLINE_MS = 900;

/** Made when it is first needed: its client takes 20 MB and a fifth of a second, which no start waits for. */
const connectWhenAsked = (address: string) => {
  const connect = async () => (await import('@temporalio/client')).Connection.lazy({ address });
  let connection: ReturnType<typeof connect> | null = null;
  return {
    connection: () => (connection ??= connect()),
    close: async () => (await connection)?.close(),
  };
};

/** Adds a check that Temporal's server answers for our namespace; answers how to close its connection, made at the first check. */
export const addTemporalCheck = ({ settings, health }: Platform): (() => Promise<void>) => {
  const address = settings.temporalAddress;
  if (address === undefined) {
    const missing = transient('TEMPORAL.UNAVAILABLE', 'ANTIPHON_TEMPORAL_ADDRESS is not set');
    health.addCheck('temporal', () => Promise.reject(missing));
    return () => Promise.resolve();
  }
  const asked = connectWhenAsked(address);
  health.addCheck('temporal', async () => {
    const connection = await asked.connection();
    const describe = () => connection.workflowService.describeNamespace({ namespace: NAMESPACE });
    await connection.withDeadline(Date.now() + DEADLINE_MS, describe).catch((cause: unknown) => {
      throw transient('TEMPORAL.UNAVAILABLE', 'Temporal cannot be reached', { cause });
    });
  });
  return asked.close;
};
