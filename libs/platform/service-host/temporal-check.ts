import { transient } from '@antiphon/kernel';
import type { Platform } from './platform.js';

/** Where the house's workflows will live (contract §6). */
const NAMESPACE = 'antiphon';
const DEADLINE_MS = 900;

/** Adds a check that Temporal's server answers for our namespace; answers how to close its connection, made at the first check. */
export const addTemporalCheck = async ({ settings, health }: Platform): Promise<() => Promise<void>> => {
  const address = settings.temporalAddress;
  if (address === undefined) {
    const missing = transient('TEMPORAL.UNAVAILABLE', 'ANTIPHON_TEMPORAL_ADDRESS is not set');
    health.addCheck('temporal', () => Promise.reject(missing));
    return () => Promise.resolve();
  }
  // Loaded here, because it takes 20 MB and a tenth of a second from the services that do not need it.
  const { Connection } = await import('@temporalio/client');
  const connection = Connection.lazy({ address });
  health.addCheck('temporal', async () => {
    const describe = () => connection.workflowService.describeNamespace({ namespace: NAMESPACE });
    await connection.withDeadline(Date.now() + DEADLINE_MS, describe).catch((cause: unknown) => {
      throw transient('TEMPORAL.UNAVAILABLE', 'Temporal cannot be reached', { cause });
    });
  });
  return () => connection.close();
};
