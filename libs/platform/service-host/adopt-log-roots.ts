import { parseArgs } from 'node:util';
import { ALL_WORKSPACES, createPool, withDatabaseTls } from '@antiphon/database';
import { adoptRoots, currentOperator } from '@antiphon/event-store';
import { invalid } from '@antiphon/kernel';
import { silentLogger } from '@antiphon/observability';
import { findSigningKeys, readLogRootsEnv } from './log-roots.module.js';
import type { Environment } from './service-env.js';

/** First argument that makes the program of the memory service adopt the log instead of serving. */
export const ADOPT_ROOTS = 'adopt-roots';

const USAGE = 'adopt-roots --reason TEXT [--by NAME]';

const readArguments = (args: readonly string[]) =>
  parseArgs({ args: [...args], options: { reason: { type: 'string' }, by: { type: 'string' } } }).values;

const adopt = async (env: Environment, args: readonly string[]): Promise<string> => {
  const { reason, by } = readArguments(args);
  if (reason === undefined) throw invalid('LOG.BAD_ADOPTION', `usage: ${USAGE}`);
  const settings = readLogRootsEnv(env);
  const keys = findSigningKeys({ ...settings, createsKey: false });
  if (keys === null)
    throw invalid('LOG.BAD_SIGNING_KEY', 'no signing key was found: set ANTIPHON_LOG_SIGNING_KEY');
  const url = withDatabaseTls(env['ANTIPHON_SERVICE_DATABASE_URL'] ?? '', env);
  const options = { url, applicationName: 'antiphon-adopt-roots', max: 1, workspace: ALL_WORKSPACES };
  const pool = createPool({ ...options, logger: silentLogger });
  try {
    const { rootsFile } = settings;
    const actor = by ?? currentOperator();
    const at = new Date().toISOString();
    const record = await adoptRoots({ pool, keys, rootsFile, actor, reason, at });
    return `adopted: record ${record.number} of ${rootsFile} begins the signed roots at position ${record.position}`;
  } finally {
    await pool.end();
  }
};

/**
 * Signs the adoption of the log, prints it, and sets the exit code. Reads the key, the database and
 * the file of roots from the environment of this service. Containers have no command line.
 */
export const runAdoptRoots = async (env: Environment, args: readonly string[]): Promise<void> => {
  try {
    process.stdout.write(`${await adopt(env, args)}\n`);
  } catch (error) {
    process.stderr.write(`${ADOPT_ROOTS}: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
};
