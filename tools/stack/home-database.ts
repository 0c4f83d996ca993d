import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { ensureEngines } from '@antiphon/bootstrap/engines/resolve-engine';
import { postgresMajorOf } from '@antiphon/bootstrap/project';
import type { HomeLayout } from '@antiphon/bootstrap/project';
import { tryLock } from '@antiphon/bootstrap/lock';
import type { Lock } from '@antiphon/bootstrap/types';
import { createProgress } from '@antiphon/bootstrap/progress';
import { cacheFolder, projectRoot } from '@antiphon/bootstrap/project';
import { endOrphans } from '@antiphon/bootstrap/stop-stack';
import { UserError } from '@antiphon/bootstrap/user-error';
import type { Logger } from '@antiphon/observability';
import { ensureCredentials } from './home/credentials.js';
import { createPorts } from './home/ports.js';
import { prepareHome } from './home/prepare-home.js';
import { mountDatabase } from './mounts/mount-database.js';
import type { MountedDatabase } from './mounts/mount-database.js';
import { createChildrenRecord } from './process/children-record.js';

export interface HomeDatabaseOptions {
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly logger: Logger;
  readonly onProgress: (line: string) => void;
}

/** A stack at rest: its database runs, and nothing else of it. */
export interface HomeAtRest {
  /** As the owner of every table. */
  readonly databaseUrl: string;
  /** Deletes what NATS and Temporal kept: both are made again from the log at the next start. */
  forgetOthers(): void;
}

const mount = async (
  { home, env, logger, onProgress }: HomeDatabaseOptions,
  paths: HomeLayout,
  lock: Lock,
): Promise<MountedDatabase> => {
  const progress = createProgress(onProgress);
  const where = { cache: cacheFolder(env), env, root: projectRoot, postgresMajor: postgresMajorOf(home) };
  const { postgres } = await ensureEngines(['postgres'], where, progress);
  if (postgres === undefined) throw new UserError('PostgreSQL is neither here nor to be had');
  const context = {
    ...{ paths, logger, credentials: ensureCredentials(paths), usualPorts: false, adopt: lock.adopt },
    ports: createPorts({ paths, note: onProgress }),
  };
  const children = createChildrenRecord(paths, lock.isHeld);
  const hooks = { logger, children, changed: () => undefined, note: onProgress };
  return mountDatabase({ context, hooks, progress, root: projectRoot }, { program: postgres });
};

/**
 * Runs `work` with the database of a home whose stack is stopped, and stops the database again. No stack can start in
 * that home meanwhile. Throws a UserError when one runs there, or the home has no
 * database of its own.
 */
export const withHomeAtRest = async <T>(
  options: HomeDatabaseOptions,
  work: (home: HomeAtRest) => Promise<T>,
): Promise<T> => {
  if (postgresMajorOf(options.home) === null)
    throw new UserError(
      `${options.home} has no database of its own.\nWhat to do: name the database with ANTIPHON_DATABASE_URL, or start the stack once with \`npm start\`.`,
    );
  const paths = prepareHome(options.home);
  const attempt = await tryLock(paths.lockFile);
  if (!attempt.acquired)
    throw new UserError(
      `a stack runs in ${options.home}.\nWhat to do: stop it with \`npm stop\`, then try again.`,
    );
  const { lock } = attempt;
  try {
    await endOrphans(options.home, options.onProgress);
    const database = await mount(options, paths, lock);
    try {
      await database.start();
      return await work({
        databaseUrl: database.ownerUrl(),
        forgetOthers: () => {
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
