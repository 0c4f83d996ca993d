import { accessSync, constants, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeDir } from '@antiphon/bootstrap/files';
import { homeLayout, postgresMajorOf } from '@antiphon/bootstrap/project';
import type { HomeLayout } from '@antiphon/bootstrap/project';
import { toUserError, UserError } from '@antiphon/bootstrap/user-error';

const MIB = 1024 * 1024;
/** PostgreSQL's first files, its write-ahead log and room for a first day. */
const NEW_HOME_MIB = 256;
const OLD_HOME_MIB = 48;

/** Root's home can be passed through, because PostgreSQL runs as another user; nobody but root can list or read it. */
const homeMode = (): number => (process.getuid?.() === 0 ? 0o711 : 0o700);

const makeFolders = (paths: HomeLayout): void => {
  makeDir(paths.home, homeMode());
  for (const folder of [paths.run, paths.credentials, paths.logs, paths.nats, paths.temporal])
    makeDir(folder);
  makeDir(paths.postgres, homeMode());
  accessSync(paths.run, constants.W_OK);
};

const existingFolder = (path: string): string =>
  statSync(path, { throwIfNoEntry: false }) === undefined ? existingFolder(dirname(path)) : path;

/** Refuses to begin on a disk so full that the engines would fail half-way with messages of their own. */
export const assertDiskSpace = (path: string, neededMib: number): void => {
  const { bavail, bsize } = statfsSync(existingFolder(path));
  const freeMib = Math.floor((bavail * bsize) / MIB);
  if (freeMib >= neededMib) return;
  throw new UserError(
    `the disk that holds ${path} is full: ${freeMib} MiB are free, and ${neededMib} MiB are needed.\n` +
      'What to do: free some space, or set ANTIPHON_HOME to a folder on another disk; then run it again.',
  );
};

/**
 * Makes the folders of a home (mode 700) and answers where everything lies.
 * Throws a UserError when it cannot be written or its disk is full.
 */
export const prepareHome = (home: string): HomeLayout => {
  const paths = homeLayout(home);
  assertDiskSpace(home, postgresMajorOf(home) === null ? NEW_HOME_MIB : OLD_HOME_MIB);
  try {
    makeFolders(paths);
  } catch (error) {
    throw toUserError(error, `the home ${home}`, 'ANTIPHON_HOME names another one');
  }
  return paths;
};
