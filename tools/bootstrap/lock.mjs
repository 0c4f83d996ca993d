import { randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { identify, isAlive, signalProcess, terminate } from './processes.mjs';

const POLL_MS = 50;

/** @typedef {{pid: number, start: string, nonce: string, children: {pid: number, start: string}[]}} LockRecord */

const readRecord = (path) => {
  try {
    return /** @type {LockRecord} */ (JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    if (error.code === 'ENOENT') return null;
    if (error instanceof SyntaxError) return { pid: 0, start: '', nonce: 'unreadable', children: [] };
    throw error;
  }
};

/** The record is complete before it gets the lock's name, so nobody ever reads half of one. */
const writeAside = (path, record) => {
  const temporary = `${path}.${record.nonce}.tmp`;
  writeFileSync(temporary, JSON.stringify(record), { mode: 0o600 });
  return temporary;
};

const createExclusively = (path, record) => {
  const temporary = writeAside(path, record);
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

const makeHandle = (path, record) => ({
  path,
  /** Names a child that must not outlive the holder: whoever takes the lock over from a dead holder ends it first. */
  adopt: (pid) => {
    const identity = identify(pid);
    if (identity === null) return;
    record.children = [...record.children.filter(isAlive), identity];
    renameSync(writeAside(path, record), path);
  },
  /** Ends every adopted child that still lives, with its process group. */
  endChildren: (signal = 'SIGTERM') => {
    for (const child of record.children) signalProcess(child, signal, { group: true });
  },
  /** False once the file is gone (somebody deleted its folder) or another one's. */
  isHeld: () => readRecord(path)?.nonce === record.nonce,
  release: () => {
    if (readRecord(path)?.nonce === record.nonce) rmSync(path, { force: true });
  },
});

const takeOver = async (path, stale, record) => {
  // One lock for each dead holder decides who may replace it: without it, two that saw the same dead
  // holder could replace one another's fresh lock.
  const right = await tryLock(`${path}.${stale.nonce}`);
  if (!right.acquired) return false;
  try {
    if (readRecord(path)?.nonce !== stale.nonce) return false;
    for (const child of stale.children) await terminate(child, { group: true, graceMs: 2_000 });
    renameSync(writeAside(path, record), path);
    return true;
  } finally {
    right.lock.release();
  }
};

/**
 * Takes the lock file `path` if it is free or its holder is dead (killed half-way, or before a reboot).
 * @returns {Promise<{acquired: true, lock: ReturnType<typeof makeHandle>} | {acquired: false, holder: LockRecord | null}>}
 */
export const tryLock = async (path) => {
  mkdirSync(dirname(path), { recursive: true });
  const record = { ...identify(process.pid), nonce: randomBytes(8).toString('hex'), children: [] };
  if (createExclusively(path, record)) return { acquired: true, lock: makeHandle(path, record) };
  const holder = readRecord(path);
  if (holder !== null && !isAlive(holder) && (await takeOver(path, holder, record))) {
    return { acquired: true, lock: makeHandle(path, record) };
  }
  return { acquired: false, holder };
};

/** Waits for the lock. `onWait` is called once, with the holder, when it is not free at once. */
export const acquireLock = async (path, { onWait = () => {}, signal } = {}) => {
  let told = false;
  for (;;) {
    signal?.throwIfAborted();
    const attempt = await tryLock(path);
    if (attempt.acquired) return attempt.lock;
    if (!told && attempt.holder !== null) {
      told = true;
      onWait(attempt.holder);
    }
    await sleep(POLL_MS, undefined, { signal });
  }
};

/** The live holder of a lock, or null. */
export const lockHolder = (path) => {
  const holder = readRecord(path);
  return holder !== null && isAlive(holder) ? holder : null;
};
