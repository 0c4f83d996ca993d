import pg from 'pg';
import { createWorkspaceQuery, PREPARE_WORKSPACE } from '@antiphon/unsafe';

/**
 * Workspace of system readers, which work for all of them: relay, projections, sweeps, audit. The
 * policies refuse it to the gateway and the sandbox.
 */
export const ALL_WORKSPACES = '*';

/** Runs statements in one workspace: row-level security hides the rows of every other one. */
export interface WorkspaceQueries {
  query<Row extends pg.QueryResultRow>(config: pg.QueryConfig): Promise<pg.QueryResult<Row>>;
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<pg.QueryResult<Row>>;
}

/** Returns SQL that sets the workspace for the rest of the transaction. */
export const setWorkspaceSql = (workspace: string): string =>
  `set local antiphon.workspace = ${pg.escapeLiteral(workspace)}`;

/** Returns SQL for the start of a connection: its workspace, and the statement of `inWorkspace`. */
export const workspacePrelude = (workspace: string | undefined): string =>
  [
    PREPARE_WORKSPACE,
    ...(workspace === undefined ? [] : [`set antiphon.workspace = ${pg.escapeLiteral(workspace)}`]),
  ].join('; ');

/**
 * Returns the queries of a workspace. On a pool, each statement sets the workspace in its own
 * transaction, without another round trip. A client is on loan for a transaction, which has set the
 * workspace when it began (`inTransaction`): its statements run as they are.
 */
export const inWorkspace = (db: pg.Pool | pg.ClientBase, workspace: string): WorkspaceQueries => {
  if (!(db instanceof pg.Pool)) return db;
  return {
    query: <Row extends pg.QueryResultRow>(config: pg.QueryConfig | string, values?: unknown[]) => {
      const given = typeof config === 'string' ? { text: config, ...(values ? { values } : {}) } : config;
      return db.query<Row>(createWorkspaceQuery(given, workspace));
    },
  };
};

/** Runs one statement in a workspace on a client on loan that is in no transaction. */
export const queryInWorkspace = <Row extends pg.QueryResultRow>(
  client: pg.ClientBase,
  workspace: string,
  config: pg.QueryConfig,
): Promise<pg.QueryResult<Row>> =>
  new Promise((resolve, reject) => {
    const settle = (error: Error | null, result: pg.QueryResult<Row>): void =>
      error ? reject(error) : resolve(result);
    const query = client.query.bind(client) as (sent: pg.QueryConfig, callback: typeof settle) => void;
    query(createWorkspaceQuery(config, workspace), settle);
  });

/** Returns queries over all workspaces, for system readers. */
export const acrossWorkspaces = (db: pg.Pool | pg.ClientBase): WorkspaceQueries =>
  inWorkspace(db, ALL_WORKSPACES);
