import { randomBytes } from 'node:crypto';
import { accessSync, constants, existsSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeDir, readJson, writeFileAtomic, writeJsonAtomic } from '@antiphon/bootstrap/files';
import { homeLayout, postgresMajorOf } from '@antiphon/bootstrap/project';
import type { HomeLayout } from '@antiphon/bootstrap/project';
import { toUserError, UserError } from '@antiphon/bootstrap/user-error';
import { SERVICES } from '@antiphon/contracts/messaging';
import type { ServiceName } from '@antiphon/contracts/messaging';

const MIB = 1024 * 1024;

/** Free space that a start needs, MiB. */
interface NeededSpace {
  /** PostgreSQL's first files, its write-ahead log and the events of a first day. */
  readonly newHome: number;
  readonly newDatabase: number;
  readonly oldHome: number;
}
const USUAL_SPACE: NeededSpace = { newHome: 256, newDatabase: 192, oldHome: 48 };
/** For a write-ahead log in segments of 1 MiB. */
const SMALL_SPACE: NeededSpace = { newHome: 56, newDatabase: 48, oldHome: 4 };

/** Size below which PostgreSQL gets a small write-ahead log. */
const SMALL_DISK_BYTES = 1024 * MIB;

/** Root's home can be searched but not listed, because PostgreSQL runs as another user. */
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

/** Returns whether a path is on a file system that is small for a database. */
export const isOnSmallDisk = (path: string): boolean => {
  const { blocks, bsize } = statfsSync(existingFolder(path));
  return blocks * bsize < SMALL_DISK_BYTES;
};

/** Throws a UserError on a full disk, before an engine fails on it with its own message. */
export const assertDiskSpace = (path: string, purpose: keyof NeededSpace): void => {
  const neededMib = (isOnSmallDisk(path) ? SMALL_SPACE : USUAL_SPACE)[purpose];
  const { bavail, bsize } = statfsSync(existingFolder(path));
  const freeMib = Math.floor((bavail * bsize) / MIB);
  if (freeMib >= neededMib) return;
  throw new UserError(
    `the disk that holds ${path} is full: ${freeMib} MiB are free, and ${neededMib} MiB are needed.\n` +
      'What to do: free some space, or set ANTIPHON_HOME to a folder on another disk; then run it again.',
  );
};

/**
 * Creates the folders of a home (mode 700) and returns its paths. Throws a UserError when it cannot
 * be written or its disk is full.
 */
export const prepareHome = (home: string): HomeLayout => {
  const paths = homeLayout(home);
  assertDiskSpace(home, postgresMajorOf(home) === null ? 'newHome' : 'oldHome');
  try {
    makeFolders(paths);
  } catch (error) {
    throw toUserError(error, `the home ${home}`, 'ANTIPHON_HOME names another one');
  }
  return paths;
};

/** Secrets of a home, generated once. Every file that holds one has mode 600. */
export interface Credentials {
  /** Names this home in places outside it. */
  readonly homeId: string;
  /** Password of PostgreSQL's owner role. */
  readonly databaseOwner: string;
  /** Passwords of each service at PostgreSQL and NATS. */
  readonly services: Readonly<Record<ServiceName, { readonly database: string; readonly nats: string }>>;
  /** Password of the role that takes archived events out of the log. */
  readonly archiver: string;
  /** Password of the NATS user without restrictions, for operators and this supervisor. */
  readonly natsOperator: string;
}

const createSecret = (): string => randomBytes(24).toString('base64url');

const generateCredentials = (): Credentials => ({
  homeId: randomBytes(6).toString('hex'),
  databaseOwner: createSecret(),
  services: Object.fromEntries(
    SERVICES.map((name) => [name, { database: createSecret(), nats: createSecret() }]),
  ) as Credentials['services'],
  archiver: createSecret(),
  natsOperator: createSecret(),
});

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';
/** Form of an API key. An admin key of an older version has another one and was never used. */
const API_KEY = /^ak_[a-z2-7]{16}_[A-Za-z0-9_-]{43}$/;

/** Generates the text of an API key. The gateway makes it valid at its start. */
const createAdminKey = (): string => {
  const id = Array.from(randomBytes(16), (byte) => BASE32[byte & 31]).join('');
  return `ak_${id}_${randomBytes(32).toString('base64url')}`;
};

const ensureAdminKey = (file: string): void => {
  if (existsSync(file) && API_KEY.test(readFileSync(file, 'utf8').trim())) return;
  writeFileAtomic(file, `${createAdminKey()}\n`);
};

/** Returns the home's credentials. Generates them and the admin key at the first start. */
export const ensureCredentials = (paths: HomeLayout): Credentials => {
  ensureAdminKey(paths.adminKeyFile);
  // Never replaced: it encrypts the credentials in the database.
  if (!existsSync(paths.masterKeyFile))
    writeFileAtomic(paths.masterKeyFile, `${randomBytes(32).toString('base64url')}\n`);
  const known = readJson(paths.secretsFile) as Partial<Credentials> | null;
  // A home of an older version lacks later credentials.
  const credentials = { ...generateCredentials(), ...known };
  if (known?.archiver !== undefined) return credentials;
  writeJsonAtomic(paths.secretsFile, credentials);
  return credentials;
};
