import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { invalid } from '@antiphon/kernel';
import type { NatsLink } from '@antiphon/messaging';
import { readStack } from '@antiphon/stack/stack-json';
import type pg from 'pg';
import type { CommandContext } from '../output.js';
import { homeOf } from './gateway-address.js';

type Location = Pick<CommandContext, 'env' | 'cwd'>;

/** Addresses of NATS and Temporal, and the operator's password for NATS. */
export interface EngineAddresses {
  readonly nats: { readonly url: string; readonly user: string; readonly password: string };
  /** `host:port` of the frontend's gRPC. */
  readonly temporal: string;
}

const OPERATOR = 'operator';
/** Timeout of the first connection: an audit that hangs reports nothing. */
const CONNECT_MS = 5_000;

/**
 * Returns the log's database: `ANTIPHON_DATABASE_URL`, else that of the stack that runs in this
 * home.
 */
export const findDatabase = ({ env, cwd }: Location): string => {
  const given = env['ANTIPHON_DATABASE_URL'];
  if (given) return given;
  const home = homeOf(env, cwd);
  const file = readStack(home)?.credentials.databaseUrlFile;
  if (file !== undefined && existsSync(file)) return readFileSync(file, 'utf8').trim();
  throw invalid(
    'CLI.USAGE',
    `no stack runs in ${home}. What to do: start it with \`npm start\`, or name the database with ANTIPHON_DATABASE_URL`,
  );
};

interface DatabaseOptions {
  readonly applicationName: string;
  /** Role that each connection sets, of which the user is a member; by default the user's own. */
  readonly role?: string;
  readonly max?: number;
  readonly idleInTransactionMs?: number;
}

/**
 * Runs `work` on the log's database and closes the connections after it. Throws
 * `DATABASE.RESTORE_UNFINISHED` for a log that a restore has left incomplete.
 */
export const withDatabase = async <T>(
  location: Location,
  options: DatabaseOptions,
  work: (pool: pg.Pool) => Promise<T>,
): Promise<T> => {
  const found = findDatabase(location);
  const [{ ALL_WORKSPACES, assertNoRestore, createPool, inTransaction, withDatabaseTls }, { silentLogger }] =
    await Promise.all([import('@antiphon/database'), import('@antiphon/observability')]);
  const url = withDatabaseTls(found, location.env);
  const pool = createPool({ ...options, url, workspace: ALL_WORKSPACES, logger: silentLogger });
  try {
    await inTransaction(pool, assertNoRestore);
    return await work(pool);
  } finally {
    await pool.end();
  }
};

/**
 * Returns the folder of archive files: `given`, `ANTIPHON_ARCHIVE_FOLDER`, else `archives` in the
 * home.
 */
export const archiveFolder = (given: string | undefined, { env, cwd }: Location): string => {
  const folder = given ?? (env['ANTIPHON_ARCHIVE_FOLDER'] || undefined);
  return folder === undefined ? join(homeOf(env, cwd), 'archives') : resolve(cwd, folder);
};

/**
 * Returns the folder of the workspaces' files, or null if this machine has none. It is
 * `ANTIPHON_FILES_FOLDER`, else the one of this home.
 */
export const filesFolderOf = ({ env, cwd }: Location): string | null => {
  const folder = (env['ANTIPHON_FILES_FOLDER'] || undefined) ?? join(homeOf(env, cwd), 'files');
  return existsSync(folder) ? folder : null;
};

/** Returns the file of signed log roots: `ANTIPHON_LOG_ROOTS_FILE`, else that of this home. */
export const rootsFile = ({ env, cwd }: Location): string =>
  (env['ANTIPHON_LOG_ROOTS_FILE'] || undefined) ?? join(homeOf(env, cwd), 'log-roots.jsonl');

const operatorIn = (file: string): EngineAddresses['nats'] | null => {
  if (!existsSync(file)) return null;
  const { url, users } = JSON.parse(readFileSync(file, 'utf8')) as {
    readonly url: string;
    readonly users: Readonly<Record<string, Omit<EngineAddresses['nats'], 'url'>>>;
  };
  const operator = users[OPERATOR];
  return operator === undefined ? null : { url, ...operator };
};

/**
 * Returns the operator's address of NATS: `ANTIPHON_NATS_URL` with
 * `ANTIPHON_OPERATOR_NATS_PASSWORD`, else NATS of this home's stack, else null.
 */
export const findNats = ({ env, cwd }: Location): EngineAddresses['nats'] | null => {
  const url = env['ANTIPHON_NATS_URL'];
  if (url) return { url, user: OPERATOR, password: env['ANTIPHON_OPERATOR_NATS_PASSWORD'] ?? '' };
  const stack = readStack(homeOf(env, cwd));
  return stack && operatorIn(stack.credentials.natsUsersFile);
};

/**
 * Returns the addresses of both engines, from variables or this home's stack. Throws `CLI.USAGE`.
 */
export const findEngines = (location: Location): EngineAddresses => {
  const home = homeOf(location.env, location.cwd);
  const nats = findNats(location);
  const temporal = location.env['ANTIPHON_TEMPORAL_ADDRESS'] || readStack(home)?.engines.temporal.address;
  if (nats && temporal) return { nats, temporal };
  throw invalid(
    'CLI.USAGE',
    `--live needs NATS and Temporal, and no stack runs in ${home}. What to do: start it with \`npm start\`, or name them with ANTIPHON_NATS_URL, ANTIPHON_OPERATOR_NATS_PASSWORD and ANTIPHON_TEMPORAL_ADDRESS`,
  );
};

/** Connects to NATS as the operator. */
export const connectOperator = async (nats: EngineAddresses['nats'], name: string): Promise<NatsLink> => {
  const [{ connectNats, readNatsTls }, { silentLogger }] = await Promise.all([
    import('@antiphon/messaging'),
    import('@antiphon/observability'),
  ]);
  const tls = readNatsTls(process.env);
  const options = { ...nats, tls, service: OPERATOR, name, logger: silentLogger };
  return connectNats({ ...options, connectTimeoutMs: CONNECT_MS });
};
