import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { cp, lchown, readdir } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { readJson, writeJsonAtomic } from '@antiphon/bootstrap/files';
import type { HomeLayout } from '@antiphon/bootstrap/project';
import { runCommand } from '@antiphon/bootstrap/processes';
import { fileSize } from '../process/bounded-log.js';
import { LOOPBACK_RULE, SOCKET_RULE } from './postgres-socket.js';
import { canReach, isTemporary, makeOwnedDir, sharedDataFolder } from './unprivileged-user.js';
import type { UnprivilegedUser } from './unprivileged-user.js';
import { assertDiskSpace, isOnSmallDisk } from '../home/home.js';
import { hasData, missingData, refuseLostLog } from '../home/lost-log.js';

export const DATABASE_OWNER = 'antiphon';

/** Content of `postgres.json` in a home. `dataDir` is relative if it is inside the home. */
interface DataRecord {
  readonly dataDir: string;
  readonly major: number;
}

export interface DataOptions {
  readonly paths: HomeLayout;
  readonly homeId: string;
  readonly password: string;
  /** Folder of initdb and postgres. */
  readonly bin: string;
  readonly version: string;
  readonly user: UnprivilegedUser | null;
  /** Records a helper process that must not outlive this one. */
  readonly adopt: (pid: number) => void;
  /** True for a restore, which fills a new database where the old one is lost. */
  readonly mayReplaceLostData: boolean;
  readonly note: (line: string) => void;
  /** Ends a server that still runs in a folder. */
  readonly endServer: (dataDir: string) => Promise<void>;
  /** Returns the folder for data that PostgreSQL's user cannot reach in the home. */
  readonly sharedFolder?: () => string;
}

/**
 * Returns the data's parent: in the home, or a shared folder where PostgreSQL's user cannot reach
 * it.
 */
const chooseParent = ({ paths, homeId, user, sharedFolder }: DataOptions): string => {
  if (user === null || canReach(paths.postgres, user)) return paths.postgres;
  const parent = join((sharedFolder ?? sharedDataFolder)(), `home-${homeId}`);
  mkdirSync(parent, { recursive: true, mode: 0o711 });
  chmodSync(parent, 0o711);
  // Names the home, so that an operator can delete the folder together with it.
  writeFileSync(join(parent, 'belongs-to.txt'), `${paths.home}\n`);
  return parent;
};

const majorOf = (version: string): number => Number(version.split('.')[0]);

/** PostgreSQL's own collation, which no upgrade of the system's C library changes. */
const LOCALE = ['--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C', '--encoding=UTF8'];

const initializeData = async (options: DataOptions, target: string): Promise<void> => {
  const { bin, user, password, paths, adopt } = options;
  const temporary = `${target}.new`;
  const passwordFile = `${target}.password`;
  rmSync(temporary, { recursive: true, force: true });
  makeOwnedDir(temporary, user);
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  if (user !== null) chownSync(passwordFile, user.uid, user.gid);
  const args = ['-D', temporary, '-U', DATABASE_OWNER, `--pwfile=${passwordFile}`, '--auth=scram-sha-256'];
  if (isOnSmallDisk(temporary)) args.push('--wal-segsize=1');
  try {
    await runCommand(join(bin, 'initdb'), [...args, '--data-checksums', ...LOCALE], {
      cwd: '/',
      env: { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' },
      adopt,
      ...user,
    });
    writeFileSync(join(temporary, 'pg_hba.conf'), `${SOCKET_RULE}${LOOPBACK_RULE}`);
    // A kill before this leaves only a folder that the next start deletes.
    renameSync(temporary, target);
  } finally {
    rmSync(passwordFile, { force: true });
  }
  writeRecord(paths, target, majorOf(options.version));
};

const writeRecord = (paths: HomeLayout, target: string, major: number): void => {
  const inside = target.startsWith(`${paths.home}/`);
  const record: DataRecord = { dataDir: inside ? target.slice(paths.home.length + 1) : target, major };
  writeJsonAtomic(paths.postgresFile, record);
};

const WAL_SEGMENT = /^[0-9A-F]{24}$/;
const SMALL_SEGMENT_BYTES = 1024 * 1024;

/**
 * Returns whether a data folder was created on a small disk: its write-ahead log has segments of
 * 1 MiB, whose size only initdb can choose.
 */
export const hasSmallSegments = (dataDir: string): boolean => {
  const folder = join(dataDir, 'pg_wal');
  const segment = readdirSync(folder).find((name) => WAL_SEGMENT.test(name));
  return segment !== undefined && fileSize(join(folder, segment)) === SMALL_SEGMENT_BYTES;
};

const recordedDataDir = (paths: HomeLayout): string | null => {
  const record = readJson(paths.postgresFile) as DataRecord | null;
  if (record === null) return null;
  return isAbsolute(record.dataDir) ? record.dataDir : join(paths.home, record.dataDir);
};

const changeOwner = async (folder: string, user: UnprivilegedUser): Promise<void> => {
  await lchown(folder, user.uid, user.gid);
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true }))
    await lchown(join(entry.parentPath, entry.name), user.uid, user.gid);
};

/** Moves a folder, or copies it to another disk. Returns true if the old one was left behind. */
const moveFolder = async (from: string, to: string, user: UnprivilegedUser | null): Promise<boolean> => {
  try {
    renameSync(from, to);
    return false;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error;
  }
  const temporary = `${to}.new`;
  rmSync(temporary, { recursive: true, force: true });
  await cp(from, temporary, { recursive: true, verbatimSymlinks: true });
  if (user !== null) await changeOwner(temporary, user);
  renameSync(temporary, to);
  return true;
};

/**
 * Moves data that an older version placed outside of the home, in a folder for temporary files, to
 * a durable folder.
 */
const leaveTemporaryFolder = async (options: DataOptions, dataDir: string): Promise<string> => {
  const { paths, user, version, note, endServer } = options;
  if (dataDir.startsWith(`${paths.home}/`) || !isTemporary(dataDir)) return dataDir;
  const target = join(chooseParent(options), 'data');
  if (target === dataDir) return dataDir;
  await endServer(dataDir);
  const isLeft = await moveFolder(dataDir, target, user);
  writeRecord(paths, target, majorOf(version));
  note(`PostgreSQL: moved its data from ${dataDir}, a folder for temporary files, to ${target}`);
  if (isLeft) note(`PostgreSQL: the copy in ${dataDir} is no longer used; delete it`);
  return target;
};

/**
 * Returns the home's data folder. The first start creates it with checksums and SCRAM passwords.
 * Throws a UserError where the home shows that a log existed, and its data is not there.
 */
export const ensureData = async (options: DataOptions): Promise<string> => {
  const { paths, version, mayReplaceLostData } = options;
  const recorded = recordedDataDir(paths);
  if (recorded !== null && hasData(recorded)) return leaveTemporaryFolder(options, recorded);
  if (recorded !== null && !mayReplaceLostData) throw missingData(recorded, paths.postgresFile);
  const target = join(chooseParent(options), 'data');
  if (hasData(target)) {
    // Killed between the rename and the record.
    writeRecord(paths, target, majorOf(readFileSync(join(target, 'PG_VERSION'), 'utf8')));
    return target;
  }
  if (!mayReplaceLostData) refuseLostLog(paths, target);
  assertDiskSpace(target, 'newDatabase');
  await initializeData({ ...options, version }, target);
  return target;
};
