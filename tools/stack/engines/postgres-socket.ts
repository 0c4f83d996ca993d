import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { UserError } from '@antiphon/bootstrap/user-error';
import { makeOwnedDir } from './unprivileged-user.js';
import type { UnprivilegedUser } from './unprivileged-user.js';

/** Maximum length of the path of a Unix socket, bytes. */
const MAX_PATH_BYTES = process.platform === 'darwin' ? 103 : 107;

/** Authentication of PostgreSQL: passwords, on loopback and on the Unix socket. */
export const SOCKET_RULE = 'local all all scram-sha-256\n';
export const LOOPBACK_RULE = 'host all all 127.0.0.1/32 scram-sha-256\n';

/** Adds the rule of the Unix socket to data that an older version has created. */
const ensureSocketRule = (dataDir: string): void => {
  const file = join(dataDir, 'pg_hba.conf');
  const rules = readFileSync(file, 'utf8');
  if (!/^[ \t]*local\s/m.test(rules)) writeFileSync(file, `${SOCKET_RULE}${rules}`);
};

/** Listens on a Unix socket for a moment. False where the file system or a permission refuses it. */
const canListen = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(path, () => server.close(() => resolve(true)));
  });

export interface SocketOptions {
  readonly dataDir: string;
  readonly port: number;
  readonly user: UnprivilegedUser | null;
}

/**
 * Returns an empty folder for the Unix socket of PostgreSQL, next to its data. Null where services
 * must use TCP: the path is too long, or the file system has no sockets. No server may run.
 */
export const prepareSocketFolder = async ({ dataDir, port, user }: SocketOptions): Promise<string | null> => {
  const folder = join(dirname(dataDir), 'socket');
  if (Buffer.byteLength(join(folder, `.s.PGSQL.${port}`)) > MAX_PATH_BYTES) return null;
  try {
    // A killed server left its socket and its lock, whose pid another process may have by now.
    rmSync(folder, { recursive: true, force: true });
    makeOwnedDir(folder, user);
    ensureSocketRule(dataDir);
  } catch {
    return null;
  }
  return (await canListen(join(folder, 'probe'))) ? folder : null;
};

/**
 * Returns the folder for a start of the server. Services keep the address of the first start, so a
 * restart has the same folder. `known` is the folder of the first start, undefined before it.
 * Throws a `UserError` if it was lost.
 */
export const keepSocketFolder = (
  known: string | null | undefined,
  prepared: string | null,
): string | null => {
  if (known === undefined) return prepared;
  if (known === null || prepared !== null) return known;
  throw new UserError(
    `PostgreSQL cannot listen in ${known} any more, where the services connect.\n` +
      'What to do: free space on this disk, make its folder writable, and start again.',
  );
};
