import { SessionEvent, attemptOf, framesOf, initialCursor, sessionStream } from '@antiphon/contracts/agent';
import type { Frame, FrameCursor } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import type { RecordedEvent } from '@antiphon/event-store';
import { createBoundedMap, notFound } from '@antiphon/kernel';
import { findTurnStart, type FoldedTo, type StreamReads } from './find-turn-start.js';
import type { ReadVersions } from './log-poller.js';
import { deletedAnswersOf, hideAnswers, type ReadDeletedAnswers } from './hidden-frames.js';

/** Some frames of a session, in order. */
export interface FramePage {
  readonly frames: readonly Frame[];
  /**
   * Start of the attempt that runs after these frames (ms since 1970, by the log's clock), whose
   * text may be sent already. Null if no turn is open.
   */
  readonly openSince: number | null;
}

/** Bounds of one read, which a reader holds while its client reads slowly. */
const PAGE = { limit: 64, maxBytes: 512 * 1024 };
const MAX_CHECKPOINTS = 10_000;
/** Pages in the cache, for readers that need them a moment later: their number and time, ms. */
const MAX_CACHED_PAGES = 16;
const PAGE_TTL_MS = 5_000;
const BEGINNING: FoldedTo = { version: 0, cursor: initialCursor, openSince: null };

/** Returns no frames for an unknown event type, which a newer service may have written. */
const framesOfRecorded = (cursor: FrameCursor, recorded: RecordedEvent) => {
  const parsed = SessionEvent.safeParse(upcast(recorded));
  return parsed.success ? framesOf(cursor, parsed.data) : { cursor, frames: [] };
};

const readEachVersion =
  (store: StreamReads): ReadVersions =>
  async (workspace, sessionIds) =>
    new Map(
      await Promise.all(
        sessionIds.map(async (id) => [id, await store.streamVersion(workspace, sessionStream(id))] as const),
      ),
    );

interface FoldStep {
  readonly at: FoldedTo;
  readonly frames: readonly Frame[];
}

/** A page of events with their frames. */
interface FoldedPage {
  readonly steps: readonly FoldStep[];
  readonly hasMore: boolean;
}

/** Reads of one page. `running` resolves at the end of the current read. */
interface PageReads {
  running: Promise<void>;
  /** The read that follows, null if no reader waits for it. */
  next: Promise<FoldedPage> | null;
}

const readNone: ReadDeletedAnswers = () => Promise.resolve(new Set());

const foldEvent = (at: FoldedTo, event: RecordedEvent): FoldStep => {
  const { cursor, frames } = framesOfRecorded(at.cursor, event);
  const began = event.type === 'ModelCallStarted' ? Date.parse(event.recordedAt) : at.openSince;
  const openSince = cursor.openTurnId === null ? null : began;
  return { at: { version: event.streamVersion, cursor, openSince }, frames };
};

/**
 * Derives the committed frames of sessions from their event streams. Long sessions cost a few short
 * reads.
 */
export class FrameLog {
  readonly #store: StreamReads;
  readonly #readVersions: ReadVersions;
  readonly #readDeleted: ReadDeletedAnswers;
  readonly #checkpoints = createBoundedMap<FoldedTo>(MAX_CHECKPOINTS);
  /** Reads of pages, by session and place. */
  readonly #reads = new Map<string, PageReads>();
  /** Pages that were read last. Events do not change, but further ones may follow. */
  readonly #pageCache = createBoundedMap<FoldedPage>(MAX_CACHED_PAGES);

  /** Without `readVersions` the version of each event stream is read by a query of its own. */
  constructor(store: StreamReads, readVersions?: ReadVersions, readDeleted: ReadDeletedAnswers = readNone) {
    this.#store = store;
    this.#readDeleted = readDeleted;
    this.#readVersions = readVersions ?? readEachVersion(store);
  }

  /** Returns the versions of the event streams of sessions. */
  versions(workspace: string, sessionIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return this.#readVersions(workspace, sessionIds);
  }

  /**
   * Yields frames with an offset above `after`, in order, one event at a time and read on demand.
   * The last page marks the end of the log. Throws `GATEWAY.SESSION_NOT_FOUND`.
   */
  async *framesAfter(workspace: string, sessionId: string, after: number): AsyncGenerator<FramePage> {
    let openSince: number | null = null;
    for await (const { at, frames } of this.#fold(workspace, sessionId, after)) {
      openSince = at.openSince;
      const fresh = frames.filter(({ offset }) => offset > after);
      if (fresh.length > 0) yield { frames: fresh, openSince };
    }
    yield { frames: [], openSince };
  }

  /**
   * Returns the cursor after the last committed frame, and the time at which the last attempt of an
   * open turn began. Throws `GATEWAY.SESSION_NOT_FOUND`.
   */
  async end(workspace: string, sessionId: string): Promise<FrameCursor & Pick<FoldedTo, 'openSince'>> {
    let end: FoldedTo = BEGINNING;
    for await (const { at } of this.#fold(workspace, sessionId, Number.MAX_SAFE_INTEGER)) end = at;
    return { ...end.cursor, openSince: end.openSince };
  }

  /** Folds from the newest checkpoint before `after`, else from the turn that contains `after`. */
  async *#fold(workspace: string, sessionId: string, after: number): AsyncGenerator<FoldStep> {
    const key = `${workspace}/${sessionId}`;
    let at = this.#checkpointBefore(key, after);
    let hasSearched = at.version > 0;
    if (hasSearched) yield { at, frames: [] };
    for (;;) {
      const { steps, hasMore } = await this.#readShared(workspace, sessionId, at);
      if (steps.length === 0 && at.version === 0)
        throw notFound('GATEWAY.SESSION_NOT_FOUND', `no session ${sessionId}`);
      for (const step of steps) {
        at = step.at;
        yield step;
      }
      if (!hasMore) break;
      // Skips the events between the beginning of a long session and the requested turn.
      if (!hasSearched) at = await this.#skipTo(workspace, sessionId, attemptOf(after), at);
      hasSearched = true;
    }
    this.#saveCheckpoint(key, at);
  }

  /**
   * Returns the page after a place. Readers that need it within seconds share one read and its
   * frames. Otherwise each of a thousand slow readers would hold its own copy. A read that has
   * begun is not shared, as it may lack what was committed since.
   */
  #readShared(workspace: string, sessionId: string, at: FoldedTo): Promise<FoldedPage> {
    const { attempt, lastOffset } = at.cursor;
    const key = `${workspace}/${sessionId}/${at.version}/${attempt}/${lastOffset}/${at.openSince}`;
    const cached = this.#pageCache.get(key);
    // It may have been the last page when it was read: the end of the log is always read.
    if (cached)
      return Promise.all([
        this.#hide(workspace, sessionId, { ...cached, hasMore: true }),
        this.#checkReadable(workspace, sessionId, at),
      ]).then(([page]) => page);
    const reads = this.#reads.get(key) ?? { running: Promise.resolve(), next: null };
    this.#reads.set(key, reads);
    const end = (): void => void (reads.next === null && this.#reads.delete(key));
    reads.next ??= reads.running.then(() => {
      reads.next = null;
      const page = this.#readPage(workspace, sessionId, at).then((read) => this.#cache(key, read));
      reads.running = page.then(end, end);
      return page;
    });
    return reads.next;
  }

  /** Rejects with `LOG.ARCHIVED` if the page after a place was archived since it was read. */
  async #checkReadable(workspace: string, sessionId: string, { version }: FoldedTo): Promise<void> {
    const firstEvent = { fromVersion: version + 1, limit: 1, maxBytes: 1 };
    await this.#store.readStreamPage(workspace, sessionStream(sessionId), firstEvent);
  }

  #cache(key: string, page: FoldedPage): FoldedPage {
    if (page.steps.length === 0) return page;
    this.#pageCache.put(key, page);
    setTimeout(() => this.#pageCache.delete(key), PAGE_TTL_MS).unref();
    return page;
  }

  async #readPage(workspace: string, sessionId: string, from: FoldedTo): Promise<FoldedPage> {
    const options = { fromVersion: from.version + 1, ...PAGE };
    const page = await this.#store.readStreamPage(workspace, sessionStream(sessionId), options);
    let at = from;
    const steps = page.events.map((event) => {
      const step = foldEvent(at, event);
      at = step.at;
      return step;
    });
    if (page.hasMore) return this.#hide(workspace, sessionId, { steps, hasMore: true });
    // A deletion follows its turn: after the last page there is none.
    return { steps: hideAnswers(steps, deletedAnswersOf(page.events)), hasMore: false };
  }

  /** Returns a page without the texts of answers that were deleted after it. */
  async #hide(workspace: string, sessionId: string, page: FoldedPage): Promise<FoldedPage> {
    const deleted = await this.#readDeleted(workspace, sessionId);
    return { ...page, steps: hideAnswers(page.steps, deleted) };
  }

  #checkpointBefore(key: string, after: number): FoldedTo {
    const checkpoint = this.#checkpoints.get(key);
    return checkpoint && checkpoint.cursor.lastOffset <= after ? checkpoint : BEGINNING;
  }

  #saveCheckpoint(key: string, at: FoldedTo): void {
    if ((this.#checkpoints.get(key)?.version ?? 0) <= at.version) this.#checkpoints.put(key, at);
  }

  async #skipTo(workspace: string, sessionId: string, attempt: number, at: FoldedTo): Promise<FoldedTo> {
    if (attempt <= at.cursor.attempt) return at;
    const found = await findTurnStart(this.#store, workspace, sessionId, attempt, at.cursor);
    return found && found.version > at.version ? found : at;
  }
}
