import { randomBytes } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeFolders } from './files.mjs';
import { identify, isAlive, signalProcess, terminate } from './processes.mjs';

const POLL_MS = 50;

/** @type {(path: string) => import('./types.js').LockRecord | null} */
const readRecord = (path) => {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT') return null;
    if (error instanceof SyntaxError) return { pid: 0, start: '', nonce: 'unreadable', children: [] };
    throw error;
  }
};

/**
 * Writes the record completely before it gets the lock's name, so that readers never see a part.
 */
const writeTemporary = (path, record) => {
  const temporary = `${path}.${record.nonce}.tmp`;
  writeFileSync(temporary, JSON.stringify(record), { mode: 0o600 });
  return temporary;
};

const createExclusively = (path, record) => {
  const temporary = writeTemporary(path, record);
  try {
    linkSync(temporary, path);
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
};

/** @type {import('./types.js').CreateLock} */
const createLock = (path, record) => ({
  path,
  adopt: (pid) => {
    const identity = identify(pid);
    if (identity === null) return;
    record.children = [...record.children.filter(isAlive), identity];
    renameSync(writeTemporary(path, record), path);
  },
  endChildren: (signal = 'SIGTERM') => {
    for (const child of record.children) signalProcess(child, signal, { group: true });
  },
  isHeld: () => readRecord(path)?.nonce === record.nonce,
  release: () => {
    if (readRecord(path)?.nonce === record.nonce) rmSync(path, { force: true });
  },
});

/** Replaces the lock of a dead holder and ends the children that it left. */
const takeOverAbandoned = async (path, stale, record) => {
  // A lock per dead holder serializes this. Without it, two processes that saw the same dead holder
  // could each replace the other's fresh lock.
  const takeover = await tryLock(`${path}.${stale.nonce}`);
  if (!takeover.acquired) return false;
  try {
    if (readRecord(path)?.nonce !== stale.nonce) return false;
    for (const child of stale.children) await terminate(child, { group: true, graceMs: 2_000 });
    renameSync(writeTemporary(path, record), path);
    return true;
  } finally {
    takeover.lock.release();
  }
};

/**
 * Acquires the lock file if it is free or its holder is dead.
 * @type {(path: string) => Promise<import('./types.js').LockAttempt>}
 */
export const tryLock = async (path) => {
  makeFolders(dirname(path));
  const self = /** @type {import('./types.js').ProcessIdentity} */ (identify(process.pid));
  const record = { ...self, nonce: randomBytes(8).toString('hex'), children: [] };
  if (createExclusively(path, record)) return { acquired: true, lock: createLock(path, record) };
  const holder = readRecord(path);
  if (holder !== null && !isAlive(holder) && (await takeOverAbandoned(path, holder, record)))
    return { acquired: true, lock: createLock(path, record) };
  return { acquired: false, holder };
};

/**
 * Waits for the lock. Calls `onWait` once with the holder if the lock is not free.
 * @type {import('./types.js').AcquireLock}
 */
export const acquireLock = async (path, { onWait = () => {}, signal } = {}) => {
  let hasNotified = false;
  for (;;) {
    signal?.throwIfAborted();
    const attempt = await tryLock(path);
    if (attempt.acquired) return attempt.lock;
    if (!hasNotified && attempt.holder !== null) {
      hasNotified = true;
      onWait(attempt.holder);
    }
    await sleep(POLL_MS, undefined, { signal });
  }
};

/**
 * Returns the live holder of a lock, or null.
 * @type {(path: string) => import('./types.js').LockRecord | null}
 */
export const lockHolder = (path) => {
  const holder = readRecord(path);
  return holder !== null && isAlive(holder) ? holder : null;
};
