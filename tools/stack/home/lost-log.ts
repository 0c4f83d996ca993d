import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { HomeLayout } from '@antiphon/bootstrap/project';
import { UserError } from '@antiphon/bootstrap/user-error';
import pg from 'pg';

type Stat = (path: string) => unknown;

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? '';
const isAbsent = (error: unknown): boolean => ['ENOENT', 'ENOTDIR'].includes(codeOf(error));

const NEXT =
  'or restore a backup with `antiphon restore FOLDER`. To begin with an empty log on purpose, name another home with ANTIPHON_HOME.';

/**
 * Returns true if a folder has the data of a PostgreSQL. Throws a UserError if it cannot be read,
 * which says nothing about its content.
 */
export const hasData = (dataDir: string, stat: Stat = statSync): boolean => {
  try {
    stat(join(dataDir, 'PG_VERSION'));
    return true;
  } catch (error) {
    if (isAbsent(error)) return false;
    throw new UserError(
      `the data of PostgreSQL in ${dataDir} cannot be read (${codeOf(error)}), so the log may be there.\n` +
        'What to do: start as the user that owns the folder, or repair its permissions or its disk; then run this again.',
      { cause: error },
    );
  }
};

const isFolder = (path: string): boolean => {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
};

/** Makes the error for a recorded data folder without data. */
export const missingData = (dataDir: string, recordFile: string): UserError =>
  new UserError(
    `the log of this home was in ${dataDir} (${recordFile}), and ${
      isFolder(dataDir) ? 'that folder has no data' : 'that folder does not exist'
    }. Nothing was created in its place.\n` +
      `What to do: if it lies on a disk of its own, mount the disk; if it was moved, move it back; ${NEXT}`,
  );

/** A file of the home that names a log with events. */
export interface LogEvidence {
  readonly file: string;
  /** Newest position that is known; null where only the existence is. */
  readonly position: number | null;
  /** Newest epoch that is known. */
  readonly epoch: number | null;
}

const readRoots = (file: string): LogEvidence | null => {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (isAbsent(error)) return null;
    throw error;
  }
  const newest = text.split('\n').reduce<{ epoch: number; position: number } | null>((best, line) => {
    try {
      const { epoch, position } = JSON.parse(line) as { epoch?: unknown; position?: unknown };
      return typeof epoch === 'number' && typeof position === 'number' && position > 0
        ? { epoch, position }
        : best;
    } catch {
      return best; // a torn line; the audit reports it
    }
  }, null);
  return newest && { file, ...newest };
};

/** Finds the relay's stream in JetStream's store: `<store>/jetstream/<account>/streams/EVENTS`. */
const findEvents = (store: string): LogEvidence | null => {
  const root = join(store, 'jetstream');
  try {
    for (const account of readdirSync(root)) {
      const file = join(root, account, 'streams', 'EVENTS');
      if (isFolder(file)) return { file, position: null, epoch: null };
    }
  } catch (error) {
    if (!isAbsent(error)) throw error;
  }
  return null;
};

/** Returns the file with the signed roots of a home's log. */
export const rootsFileOf = (
  paths: HomeLayout,
  env: Readonly<Record<string, string | undefined>> = process.env,
): string => (env['ANTIPHON_LOG_ROOTS_FILE'] || undefined) ?? join(paths.home, 'log-roots.jsonl');

/** Returns what shows that this home once had a log, or null. */
export const findLogEvidence = (paths: HomeLayout): LogEvidence | null =>
  readRoots(rootsFileOf(paths)) ?? findEvents(join(paths.nats, 'jetstream'));

/** Refuses to create a database at `target` where the home shows that there was one. */
export const refuseLostLog = (paths: HomeLayout, target: string): void => {
  const evidence = findLogEvidence(paths);
  if (evidence === null) return;
  throw new UserError(
    `this home had a log (${evidence.file}), and there is no data of PostgreSQL in ${target}. Nothing was created.\n` +
      `What to do: if the log was in another database, set ANTIPHON_DATABASE_URL to it again; if the folder was moved or its disk is not mounted, bring it back; ${NEXT}`,
  );
};

const LOG_SQL = `select to_regclass('public.log_head') is not null as "exists"`;
const HEAD_SQL = `select epoch::integer, base_position > 0 or exists (select from public.events) as used
  from public.log_head where id = 1`;

/**
 * Refuses a database without a log, or with an empty one, where the signed roots of the home name
 * events of it. Runs before the migrations.
 */
export const refuseEmptyDatabase = async (paths: HomeLayout, url: string, shown: string): Promise<void> => {
  const evidence = readRoots(rootsFileOf(paths));
  if (evidence === null) return;
  const client = new pg.Client({ connectionString: url, application_name: 'antiphon-supervisor' });
  await client.connect();
  try {
    const { rows } = await client.query<{ exists: boolean }>(LOG_SQL);
    if (rows[0]?.exists === true) {
      const head = (await client.query<{ epoch: number; used: boolean }>(HEAD_SQL)).rows[0];
      // A later epoch began with a restore, which may be that of an empty log.
      if (head !== undefined && (head.used || head.epoch > (evidence.epoch ?? 0))) return;
    }
  } finally {
    await client.end();
  }
  throw new UserError(
    `the database at ${shown} has no events, but ${evidence.file} names event ${evidence.position ?? '?'} of this home's log. Nothing was changed.\n` +
      `What to do: name the right database with ANTIPHON_DATABASE_URL, ${NEXT}`,
  );
};
