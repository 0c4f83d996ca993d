import type { Client, Connection } from '@temporalio/client';
import { transient } from '@antiphon/kernel';
import { toClientOptions } from './temporal-server.js';
import type { TemporalServer } from './temporal-server.js';

export { temporalServer } from './temporal-server.js';

/** Namespace of all workflows. */
export const TEMPORAL_NAMESPACE = 'antiphon';
const DEADLINE_MS = 5_000;

/** A connection to Temporal, opened at its first use and restored after an outage. */
export interface TemporalLink {
  readonly address: string;
  readonly namespace: string;
  /**
   * Calls the client with a deadline; throws `TEMPORAL.UNAVAILABLE` (transient) when no server
   * responds.
   */
  use<T>(work: (client: Client) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

interface Opened {
  readonly connection: Connection;
  readonly client: Client;
}

/** gRPC codes: cancelled, deadline exceeded, unavailable. */
const UNAVAILABLE_CODES: ReadonlySet<unknown> = new Set([1, 4, 14]);
const codeOf = (error: unknown): unknown =>
  (error as { code?: unknown }).code ?? (error as { cause?: { code?: unknown } }).cause?.code;

const translateError = (error: unknown): never => {
  if (!UNAVAILABLE_CODES.has(codeOf(error))) throw error;
  throw transient('TEMPORAL.UNAVAILABLE', 'Temporal cannot be reached', { cause: error });
};

/** Creates a link to a server, or to the plain gRPC frontend of an address, as `host:port`. */
export const openTemporal = (
  server: string | TemporalServer,
  namespace: string = TEMPORAL_NAMESPACE,
): TemporalLink => {
  let opening: Promise<Opened> | undefined;
  const open = async (): Promise<Opened> => {
    // Loaded here: the client takes 20 MB and 100 ms, which most processes do not need.
    const { Client, Connection } = await import('@temporalio/client');
    const connection = Connection.lazy(toClientOptions(server));
    return { connection, client: new Client({ connection, namespace }) };
  };
  return {
    address: typeof server === 'string' ? server : server.address,
    namespace,
    use: async (work) => {
      const { connection, client } = await (opening ??= open());
      return connection.withDeadline(Date.now() + DEADLINE_MS, () => work(client)).catch(translateError);
    },
    close: async () => {
      const opened = await opening;
      await opened?.connection.close();
    },
  };
};
