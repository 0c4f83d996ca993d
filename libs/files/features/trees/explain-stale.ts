import { AppError, isAppError } from '@antiphon/kernel';
import { TEXT_DEADLINE_MS } from '@antiphon/service-host/worker-pool';
import { fileJobs } from '../text-work.js';
import { isBinary } from './describe-change.js';

/** Maximum size of a version whose change the refusal of a request shows, in bytes. */
const MAX_SHOWN_BYTES = 1_024 * 1_024;
/** Codes of bytes that no longer exist. */
const GONE: ReadonlySet<string> = new Set(['FILE.ERASED', 'FILE.NO_BYTES']);

type ReadBytes = (digest: string) => Promise<Uint8Array>;

/** Maximum number of differences for refusals that wait. A refusal beyond them shows none. */
const MOST_WAITING = 4;

/** Describes in a thread what differs between two versions of a text. */
export const describeInThread = (
  owner: string,
  before: Uint8Array,
  after: Uint8Array,
  mostWaiting?: number,
): Promise<string> =>
  fileJobs.run({
    ...{ name: 'describeChange', owner, deadlineMs: TEXT_DEADLINE_MS },
    // A copy, because a view would take the whole buffer below it along.
    input: [new Uint8Array(before), new Uint8Array(after)],
    ...(mostWaiting === undefined ? {} : { mostWaiting }),
  });

/** Describes the change between two versions, or says that the bytes of one are gone. */
export const describeStale = async (
  owner: string,
  read: ReadBytes,
  before: string,
  now: string,
): Promise<string> => {
  try {
    return await describeInThread(owner, await read(before), await read(now));
  } catch (error) {
    if (!isAppError(error)) throw error;
    if (error.code.startsWith('WORK.')) return '[the change is too large to be shown]';
    if (!GONE.has(error.code)) throw error;
    return '[the content of one of the versions was erased]';
  }
};

export interface StoredVersions {
  readonly workspace: string;
  /** Returns the sizes of those of the digests that are stored. */
  sizes(digests: readonly string[]): Promise<ReadonlyMap<string, number>>;
  read: ReadBytes;
}

/** Returns the difference of two texts; null for other bytes, large ones and those that are gone. */
const diffOf = async (versions: StoredVersions, before: string, now: string): Promise<string | null> => {
  try {
    const sizes = await versions.sizes([before, now]);
    const isShown = [before, now].every((digest) => (sizes.get(digest) ?? Infinity) <= MAX_SHOWN_BYTES);
    if (!isShown) return null;
    const [old, last] = [await versions.read(before), await versions.read(now)];
    if (isBinary(old) || isBinary(last)) return null;
    return await describeInThread(versions.workspace, old, last, MOST_WAITING);
  } catch {
    // The refusal stands, also where the difference cannot be read or other ones wait.
    return null;
  }
};

/** Runs the change of a request. `FILE.STALE` gets the difference of a text as `diff` in its data. */
export const explainStale = async <T>(versions: StoredVersions, change: () => T | Promise<T>): Promise<T> => {
  try {
    return await change();
  } catch (error) {
    if (!isAppError(error) || error.code !== 'FILE.STALE') throw error;
    const { expected, digest } = error.data;
    if (typeof expected !== 'string' || typeof digest !== 'string') throw error;
    const diff = await diffOf(versions, expected, digest);
    if (diff === null) throw error;
    const { kind, code, message, cause } = error;
    throw new AppError(kind, code, message, { cause, data: { ...error.data, diff } });
  }
};
