import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  chmodSync,
  chownSync,
} from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { readJson, writeJsonAtomic } from '@antiphon/bootstrap/files';
import type { HomeLayout } from '@antiphon/bootstrap/project';
import { runCommand } from '@antiphon/bootstrap/processes';
import { canReach, makeOwnedDir, sharedFolder } from './unprivileged-user.js';
import type { UnprivilegedUser } from './unprivileged-user.js';
import { assertDiskSpace } from '../home/prepare-home.js';

export const DATABASE_OWNER = 'antiphon';

/** `postgres.json` in a home: where its data lies (relative to the home if inside it), and which major version made it. */
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
  /** Names a helper process that must not outlive this one. */
  readonly adopt: (pid: number) => void;
}

/** In the home; outside it, in a folder named after the home's id, when PostgreSQL's user cannot get there. */
const chooseParent = ({ paths, homeId, user }: DataOptions): string => {
  if (user === null || canReach(paths.postgres, user)) return paths.postgres;
  const parent = join(sharedFolder(), `home-${homeId}`);
  mkdirSync(parent, { recursive: true, mode: 0o711 });
  chmodSync(parent, 0o711);
  // For whoever finds the folder after its home was deleted, and wonders whether it may go as well.
  writeFileSync(join(parent, 'belongs-to.txt'), `${paths.home}\n`);
  return parent;
};

const majorOf = (version: string): number => Number(version.split('.')[0]);

/** From 17 on PostgreSQL brings a collation of its own, which no upgrade of the system's C library changes. */
const LOCALE = ['--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C', '--encoding=UTF8'];

const initialise = async (options: DataOptions, target: string): Promise<void> => {
  const { bin, user, password, paths, adopt } = options;
  const aside = `${target}.new`;
  const passwordFile = `${target}.password`;
  rmSync(aside, { recursive: true, force: true });
  makeOwnedDir(aside, user);
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  if (user !== null) chownSync(passwordFile, user.uid, user.gid);
  const args = ['-D', aside, '-U', DATABASE_OWNER, `--pwfile=${passwordFile}`, '--auth=scram-sha-256'];
  try {
    await runCommand(join(bin, 'initdb'), [...args, '--data-checksums', ...LOCALE], {
      cwd: '/',
      env: { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' },
      adopt,
      ...(user === null ? {} : { uid: user.uid, gid: user.gid }),
    });
    writeFileSync(join(aside, 'pg_hba.conf'), 'host all all 127.0.0.1/32 scram-sha-256\n');
    // A kill before this leaves only what the next start throws away.
    renameSync(aside, target);
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

const recordedDataDir = (paths: HomeLayout): string | null => {
  const record = readJson(paths.postgresFile) as DataRecord | null;
  if (record === null) return null;
  return isAbsolute(record.dataDir) ? record.dataDir : join(paths.home, record.dataDir);
};

/** The home's data folder, made with `initdb` (checksums on, passwords by SCRAM) at its first start. */
export const ensureData = async (options: DataOptions): Promise<string> => {
  const { paths, version } = options;
  const recorded = recordedDataDir(paths);
  if (recorded !== null && existsSync(join(recorded, 'PG_VERSION'))) return recorded;
  const target = join(chooseParent(options), 'data');
  if (existsSync(join(target, 'PG_VERSION'))) {
    // Killed between the rename and the record.
    writeRecord(paths, target, majorOf(readFileSync(join(target, 'PG_VERSION'), 'utf8')));
    return target;
  }
  assertDiskSpace(target, 192);
  await initialise({ ...options, version }, target);
  return target;
};
