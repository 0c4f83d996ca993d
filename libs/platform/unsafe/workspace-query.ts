import pg from 'pg';

/** The part of pg's connection that sends a bound statement. */
interface Sender {
  readonly stream: { cork(): void; uncork(): void };
  bind(message: { portal: string; statement: string; values: readonly string[] }): void;
  execute(message: { portal: string; rows: undefined }): void;
}

/** The methods of pg's query that receive messages of the server. */
interface Receiver {
  prepare(connection: Sender): void;
  requiresPreparation(): boolean;
  handleDataRow(message: unknown): void;
  handleCommandComplete(message: unknown, connection: Sender): void;
}

const base = pg.Query.prototype as unknown as Partial<Receiver>;

/** Name of the statement that each connection prepares with `PREPARE_WORKSPACE`. */
const STATEMENT = 'antiphon_workspace';

/** SQL that prepares a connection for `createWorkspaceQuery`. */
export const PREPARE_WORKSPACE = `prepare ${STATEMENT} (text) as select set_config('antiphon.workspace', $1, true)`;

/**
 * A query that sets the workspace of its own transaction. Both statements leave before one sync, so
 * the server runs them in one implicit transaction, and the setting ends with it. The server does
 * not describe the first statement: only its row and its completion must be skipped.
 */
class WorkspaceQuery extends (pg.Query as unknown as new (config: pg.QueryConfig) => Receiver) {
  private isWorkspaceSet = false;

  constructor(
    config: pg.QueryConfig,
    private readonly workspace: string,
  ) {
    super(config);
  }

  /** Only the extended protocol shares a transaction between messages. */
  override requiresPreparation(): boolean {
    return true;
  }

  override prepare(connection: Sender): void {
    connection.bind({ portal: '', statement: STATEMENT, values: [this.workspace] });
    connection.execute({ portal: '', rows: undefined });
    super.prepare(connection);
  }

  override handleDataRow(message: unknown): void {
    if (this.isWorkspaceSet) super.handleDataRow(message);
  }

  override handleCommandComplete(message: unknown, connection: Sender): void {
    if (this.isWorkspaceSet) super.handleCommandComplete(message, connection);
    else this.isWorkspaceSet = true;
  }
}

/**
 * Throws where the internals of pg have changed: a query without its workspace would read nothing.
 * Called once, when the first query is created.
 */
const requireInternals = (): void => {
  const names = ['prepare', 'requiresPreparation', 'handleDataRow', 'handleCommandComplete'] as const;
  const missing = names.filter((name) => typeof base[name] !== 'function');
  if (missing.length > 0)
    throw new Error(`pg.Query lacks ${missing.join(', ')}: use the pinned version of pg`);
};

let isChecked = false;

/**
 * Creates a query that runs in a workspace, in the round trip and the transaction of its own. The
 * connection must have run `PREPARE_WORKSPACE`.
 */
export const createWorkspaceQuery = (config: pg.QueryConfig, workspace: string): pg.QueryConfig => {
  if (!isChecked) requireInternals();
  isChecked = true;
  // pg accepts a query where it expects a configuration, and calls back with its result.
  return new WorkspaceQuery(config, workspace) as unknown as pg.QueryConfig;
};
