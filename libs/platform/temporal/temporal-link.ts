import type { Client, Connection } from '@temporalio/client';
import { transient } from '@antiphon/kernel';

/** Contract §6. */
export const TEMPORAL_NAMESPACE = 'antiphon';
const DEADLINE_MS = 5_000;

/** A connection to Temporal that is made at its first use and again after the server was away. */
export interface TemporalLink {
  readonly address: string;
  readonly namespace: string;
  /** Calls the client with a deadline; throws `TEMPORAL.UNAVAILABLE` (transient) when no server answers. */
  use<T>(work: (client: Client) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

interface Opened {
  readonly connection: Connection;
  readonly client: Client;
}

// gRPC: cancelled, deadline exceeded, unavailable.
const AWAY: ReadonlySet<unknown> = new Set([1, 4, 14]);
const codeOf = (error: unknown): unknown =>
  (error as { code?: unknown }).code ?? (error as { cause?: { code?: unknown } }).cause?.code;

const unavailable = (error: unknown): never => {
  if (!AWAY.has(codeOf(error))) throw error;
  throw transient('TEMPORAL.UNAVAILABLE', 'Temporal cannot be reached', { cause: error });
};

/** @param address `host:port` of the frontend's gRPC */
export const openTemporal = (address: string, namespace: string = TEMPORAL_NAMESPACE): TemporalLink => {
  let opening: Promise<Opened> | undefined;
  const open = async (): Promise<Opened> => {
    // Loaded here, because it takes 20 MB and a tenth of a second from the processes that do not need it.
    const { Client, Connection } = await import('@temporalio/client');
    const connection = Connection.lazy({ address });
    return { connection, client: new Client({ connection, namespace }) };
  };
  return {
    address,
    namespace,
    use: async (work) => {
      const { connection, client } = await (opening ??= open());
      return connection.withDeadline(Date.now() + DEADLINE_MS, () => work(client)).catch(unavailable);
    },
    close: async () => {
      const opened = await opening;
      await opened?.connection.close();
    },
  };
};
