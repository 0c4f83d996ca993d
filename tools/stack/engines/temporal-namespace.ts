import type { Connection } from '@temporalio/client';

/** Contract §6. */
export const TEMPORAL_NAMESPACE = 'antiphon';
export const SEARCH_ATTRIBUTES = ['AntiphonWorkspace', 'AntiphonAgent', 'AntiphonSession'] as const;

const DEADLINE_MS = 2_000;
const RETENTION_S = 3 * 24 * 3600;
const KEYWORD = 2;
const NOT_FOUND = 5;
const ALREADY_EXISTS = 6;

const withConnection = async <T>(
  address: string,
  work: (connection: Connection) => Promise<T>,
): Promise<T> => {
  // Loaded here: it takes 20 MB, and a stack with Temporal elsewhere may never need it again.
  const client = await import('@temporalio/client');
  const connection = await client.Connection.connect({ address, connectTimeout: DEADLINE_MS });
  try {
    return await connection.withDeadline(Date.now() + DEADLINE_MS, () => work(connection));
  } finally {
    await connection.close();
  }
};

const unless = (code: number) => (error: unknown) => {
  if ((error as { code?: number }).code !== code) throw error;
};

const isMissing = (connection: Connection): Promise<boolean> =>
  connection.workflowService.describeNamespace({ namespace: TEMPORAL_NAMESPACE }).then(
    () => false,
    (error: unknown) => {
      unless(NOT_FOUND)(error);
      return true;
    },
  );

/** Makes our namespace and its search attributes on a server that somebody else runs, where they are missing. */
export const ensureNamespace = (address: string): Promise<void> =>
  withConnection(address, async (connection) => {
    if (await isMissing(connection))
      await connection.workflowService
        .registerNamespace({
          namespace: TEMPORAL_NAMESPACE,
          workflowExecutionRetentionPeriod: { seconds: RETENTION_S as never },
        })
        .catch(unless(ALREADY_EXISTS));
    const { customAttributes } = await connection.operatorService.listSearchAttributes({
      namespace: TEMPORAL_NAMESPACE,
    });
    const missing = SEARCH_ATTRIBUTES.filter((name) => customAttributes[name] === undefined);
    if (missing.length === 0) return;
    await connection.operatorService
      .addSearchAttributes({
        namespace: TEMPORAL_NAMESPACE,
        searchAttributes: Object.fromEntries(missing.map((name) => [name, KEYWORD])),
      })
      .catch(unless(ALREADY_EXISTS));
  });
