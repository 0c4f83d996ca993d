import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { ensureEngines } from '@antiphon/bootstrap/engines/resolve-engine';
import { tryLock } from '@antiphon/bootstrap/lock';
import { createProgress } from '@antiphon/bootstrap/progress';
import { cacheFolder, homeLayout, postgresMajorOf, projectRoot } from '@antiphon/bootstrap/project';
import type { HomeLayout } from '@antiphon/bootstrap/project';
import { endOrphans } from '@antiphon/bootstrap/stop-stack';
import type { Lock } from '@antiphon/bootstrap/types';
import { UserError } from '@antiphon/bootstrap/user-error';
import type { Logger } from '@antiphon/observability';
import { createDatabase } from '../engines/postgres.js';
import type { DatabaseEngine } from '../engines/postgres.js';
import { createChildrenRecord } from '../process/child-process.js';
import { ensureCredentials, prepareHome } from './home.js';
import { findLogEvidence } from './lost-log.js';
import { createPorts } from './ports.js';

export interface HomeDatabaseOptions {
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly logger: Logger;
  readonly onProgress: (line: string) => void;
  /** True for a restore, which finds a database that is not complete and migrates it itself. */
  readonly duringRestore?: boolean;
}

/** A stopped stack whose database runs. */
export interface StoppedHome {
  /** URL of the owner of all tables. */
  readonly databaseUrl: string;
  /** Deletes the data of NATS and Temporal, which the next start rebuilds from the log. */
  deleteDerivedData(): void;
}

const openDatabase = async (
  { home, env, logger, onProgress, duringRestore = false }: HomeDatabaseOptions,
  paths: HomeLayout,
  lock: Lock,
): Promise<DatabaseEngine> => {
  const progress = createProgress(onProgress);
  const search = { cache: cacheFolder(env), env, root: projectRoot, postgresMajor: postgresMajorOf(home) };
  const { postgres: program } = await ensureEngines(['postgres'], search, progress);
  if (program === undefined) throw new UserError('PostgreSQL is neither installed nor available');
  const ports = createPorts({ paths, note: onProgress });
  const credentials = ensureCredentials(paths);
  const { adopt } = lock;
  const note = onProgress;
  const context = { paths, logger, credentials, ports, usualPorts: false, adopt, note, duringRestore };
  const children = createChildrenRecord(paths, lock.isHeld, logger);
  const hooks = { logger, children, changed: () => undefined, note };
  return createDatabase({ context, hooks, progress, root: projectRoot }, { program });
};

/**
 * Runs `work` with the database of a stopped stack, under its lock, so that no stack starts there.
 * Throws a UserError when a stack runs in the home, or the home has no database of its own.
 */
export const withStoppedHome = async <T>(
  options: HomeDatabaseOptions,
  work: (home: StoppedHome) => Promise<T>,
): Promise<T> => {
  const { home, onProgress } = options;
  // A restore creates a database where the home shows that one is lost.
  const isLost = options.duringRestore === true && findLogEvidence(homeLayout(home)) !== null;
  if (postgresMajorOf(home) === null && !isLost)
    throw new UserError(
      `${home} has no database of its own.\nWhat to do: name the database with ANTIPHON_DATABASE_URL, or start the stack once with \`npm start\`.`,
    );
  const paths = prepareHome(home);
  const attempt = await tryLock(paths.lockFile);
  if (!attempt.acquired)
    throw new UserError(`a stack runs in ${home}.\nWhat to do: stop it with \`npm stop\`, then try again.`);
  const { lock } = attempt;
  try {
    await endOrphans(home, onProgress);
    const database = await openDatabase(options, paths, lock);
    try {
      await database.start();
      return await work({
        databaseUrl: database.ownerUrl(),
        deleteDerivedData: () => {
          for (const folder of [join(paths.nats, 'jetstream'), paths.temporal])
            rmSync(folder, { recursive: true, force: true });
        },
      });
    } finally {
      await database.process?.stop();
    }
  } finally {
    lock.release();
  }
};
