import type { AgentFrame } from '@antiphon/contracts/gateway';
import { queryMemory, type MemoryEntry } from '@antiphon/contracts/memory';
import { isAppError, retry, transient } from '@antiphon/kernel';
import { countError } from '@antiphon/observability';
import type { GatewayRequests } from '../gateway.ports.js';
import { aboutOf } from './agent-frames.js';
import type { TailEvent } from './workspace-tail.js';

type MemoryFrame = Extract<AgentFrame, { type: 'memory.event' }>;

/** Newest entries of a session's key that one event's changes are found in. */
const LIMIT = 100;
/** A session that memory does not know yet, or memory that cannot be reached. */
const isRetryable = (error: unknown): boolean =>
  isAppError(error) && (error.kind === 'transient' || error.code === 'MEMORY.SESSION_UNKNOWN');
/** Memory follows the log within milliseconds. A longer outage costs the frames. */
const WITHIN_MS = 30_000;
const RETRY = { firstMs: 100, maxMs: 2_000, isRetryable };
/** Maximum number of events of a workspace that wait for memory. */
export const MAX_WAITING = 1_000;

/** Returns true for an event that may change memory. */
export const canChangeMemory = ({ event }: TailEvent): boolean =>
  event.category === 'session' && event.type === 'TurnRequested';

const topicOf = ({ subject, predicate }: MemoryEntry): string => JSON.stringify([subject, predicate]);

/**
 * Finds what an event changed among the entries of its session, newest first. Returns each learned
 * entry, and before it the entry that it supersedes.
 */
export const changesOf = (
  eventId: string,
  entries: readonly MemoryEntry[],
): { readonly change: MemoryFrame['change']; readonly entry: MemoryEntry }[] => {
  const newest = new Map<string, MemoryEntry>();
  return [...entries].reverse().flatMap((entry) => {
    const former = newest.get(topicOf(entry));
    newest.set(topicOf(entry), entry);
    if (entry.eventId !== eventId) return [];
    const learned = { change: 'learned', entry } as const;
    return former ? [{ change: 'superseded', entry: former } as const, learned] : [learned];
  });
};

const leftOut = (reason: string): Error => transient('MEMORY.PROJECTION_BEHIND', reason);

/**
 * Reads of memory, one after another. While memory is unavailable, events wait for 30 s at most,
 * and at most `MAX_WAITING` of them. The frames of other events are left out and counted as errors.
 */
export class MemoryReads {
  readonly #now: () => number;
  #last: Promise<void> = Promise.resolve();
  #waiting = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Adds a read. `work` gets the time within which it may retry, ms. */
  add(work: (withinMs: number) => Promise<void>): void {
    if (this.#waiting >= MAX_WAITING) return countError('frame', leftOut('too many events wait for memory'));
    this.#waiting++;
    const until = this.#now() + WITHIN_MS;
    const run = async (): Promise<void> => {
      const left = until - this.#now();
      if (left <= 0) throw leftOut('memory was unavailable for over 30 s');
      await work(left);
    };
    this.#last = this.#last
      .then(run)
      .catch((error: unknown) => countError('frame', error))
      .finally(() => this.#waiting--);
  }
}

/** Reads the changes of memory by an event from the memory service, as frames for subscribers. */
export class MemoryFrames {
  readonly #requests: GatewayRequests;

  constructor(requests: GatewayRequests) {
    this.#requests = requests;
  }

  /** Returns the frames of an event in order. Throws if memory stays unavailable. */
  async read(
    workspace: string,
    agentId: string,
    event: TailEvent,
    withinMs = WITHIN_MS,
  ): Promise<MemoryFrame[]> {
    const about = aboutOf(agentId, event);
    const { sessionId } = about;
    if (sessionId === null) return [];
    const entries = await retry(() => this.#entries(workspace, sessionId, event.position), {
      ...RETRY,
      withinMs,
    });
    return changesOf(event.event.eventId, entries).map(({ change, entry }) => {
      const { memoryId, kind, text, subject, predicate, object, confidence } = entry;
      const fact = { memoryId, kind, text, subject, predicate, object, confidence };
      return { type: 'memory.event', ...about, change, ...fact };
    });
  }

  async #entries(workspace: string, sessionId: string, at: number): Promise<readonly MemoryEntry[]> {
    const query = { workspace, target: { sessionId }, includeSuperseded: true, at, limit: LIMIT };
    const { entries, position } = await this.#requests.request(queryMemory, query);
    if (position >= at) return entries;
    throw transient('MEMORY.PROJECTION_BEHIND', 'memory has not reached this event yet');
  }
}
