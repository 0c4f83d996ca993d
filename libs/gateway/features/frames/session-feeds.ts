import { TOOL_PROGRESS_SUBJECT, ToolProgress, liveSubject, turnEndSubject } from '@antiphon/contracts/agent';
import { countError, recordTurnStage } from '@antiphon/observability';
import { EarlyFrames } from './early-frames.js';
import { FanOut } from './fan-out.js';
import type { FrameLog } from './frame-log.js';
import { FrameReader, type FrameReaderOptions } from './frame-reader.js';
import { LiveReplay, parseLive } from './live-replay.js';
import { LogPoller, type PolledSession, type ReadVersions } from './log-poller.js';

/** Part of the message bus that the feeds use. */
export interface FrameBus {
  /** Calls back with each message's text. Returns the function that ends the subscription. */
  subscribe(subject: string, onMessage: (text: string) => void): () => void;
  /**
   * Resolves once the server has all subscriptions made so far (one round trip), or cannot be
   * reached.
   */
  flushSubscriptions(): Promise<void>;
  /**
   * Calls back with the messages of a subject in `LIVE` from a time on (ms), oldest first. Resolves
   * at the end.
   */
  replay(subject: string, since: number, each: (text: string) => void): Promise<void>;
  /** Calls back after a reconnect. Messages sent during the outage are lost. */
  onReconnect(listener: () => void): () => void;
}

export interface FollowOptions extends Pick<
  FrameReaderOptions,
  'after' | 'turnId' | 'deliver' | 'waitForRoom' | 'onError'
> {
  readonly workspace: string;
  readonly sessionId: string;
  /** True to read the log at once, because the client also wants frames of the past. */
  readonly catchUp: boolean;
}

/**
 * Grace period for the `done` frame after the event that ends the turn, ms. Then the log is read.
 */
const END_GRACE_MS = 50;
/**
 * Timeout for NATS to confirm a subscription, ms. The log is then read anyway, and again after the
 * confirmation.
 */
const SUBSCRIBED_MS = 250;
/** Time for which a feed without readers stays subscribed for the next turn, ms. */
const LINGER_MS = 30_000;
/** Maximum number of feeds without readers. The one that was left first ends first. */
export const MAX_LINGERING = 1_000;

type LogEnd = Pick<Awaited<ReturnType<FrameLog['end']>>, 'lastOffset' | 'openSince'>;
const NOTHING_NEW: LogEnd = { lastOffset: 0, openSince: null };

interface Follower {
  readonly reader: FrameReader;
  /** Turn that it waits for; undefined for a follower of the whole session. */
  readonly turnId: string | undefined;
}

/** Subscriptions of one session, shared by its readers. */
interface Feed extends PolledSession {
  readonly followers: Set<Follower>;
  readonly unsubscribe: () => void;
  readonly live: LiveReplay;
  readonly fanOut: FanOut;
  readonly early: EarlyFrames;
  /** Resolves once NATS has its subscriptions; null if nothing waits for that yet. */
  subscribed: Promise<void> | null;
  /**
   * Highest epoch seen. Frames of a lower epoch come from a driver that lost the session, and are
   * dropped.
   */
  epoch: number;
  linger: NodeJS.Timeout | null;
}

/** Returns true for a reader that waits for frames: one of an idle session costs nothing. */
const isWaiting = ({ reader, turnId }: Follower): boolean => turnId !== undefined || reader.expectsMore();

const hasFollowerOf = ({ followers }: Feed, turnId: string): boolean => {
  for (const follower of followers) if (follower.turnId === turnId) return true;
  return false;
};

const notifyOfEnd = (feed: Feed, turnId: string): void => {
  const { followers, fanOut } = feed;
  setTimeout(() => {
    // The `done` frame may be among those that many readers are getting.
    if (fanOut.isBusy) return notifyOfEnd(feed, turnId);
    for (const { reader, turnId: own } of followers)
      if ((own ?? turnId) === turnId && !reader.hasSeenDone(turnId)) void reader.catchUp();
  }, END_GRACE_MS).unref();
};

/**
 * Follows sessions: live frames from the bus, and the log for frames that were lost. One
 * subscription a session.
 */
export class SessionFeeds {
  readonly #bus: FrameBus;
  readonly #log: FrameLog;
  readonly #feeds = new Map<string, Feed>();
  /** Feeds without readers, in the order in which they were left. */
  readonly #lingering = new Map<string, Feed>();
  readonly #stopReconnects: () => void;
  readonly #stopProgress: () => void;
  readonly #poller: LogPoller;

  constructor(bus: FrameBus, log: FrameLog, now: () => number) {
    this.#bus = bus;
    this.#log = log;
    this.#stopReconnects = bus.onReconnect(() => this.#catchUpAll());
    this.#stopProgress = bus.subscribe(TOOL_PROGRESS_SUBJECT, (text) => this.#onProgress(text));
    const readVersions: ReadVersions = (workspace, sessionIds) => log.versions(workspace, sessionIds);
    this.#poller = new LogPoller(readVersions, now, (error) => countError('frame', error));
  }

  /** Follows a session's frames until the returned function is called. */
  follow(options: FollowOptions): () => void {
    const { workspace, sessionId, after, turnId, deliver, waitForRoom, onError } = options;
    const key = `${workspace}/${sessionId}`;
    const feed = this.#acquire(key, workspace, sessionId);
    const reader = new FrameReader({
      after,
      turnId,
      deliver,
      waitForRoom,
      onError,
      committed: (from) => this.#log.framesAfter(workspace, sessionId, from),
      live: (from, since) => feed.live.framesAfter(from, since),
    });
    const follower: Follower = { reader, turnId };
    feed.followers.add(follower);
    if (options.catchUp) this.#readPast(feed, reader);
    const early = turnId === undefined ? [] : feed.early.take(turnId);
    // Delivered after the caller has the function that ends its following.
    if (early.length > 0) queueMicrotask(() => early.forEach((frame) => reader.push(frame)));
    return () => this.#release(key, feed, follower);
  }

  close(): void {
    this.#poller.close();
    this.#stopReconnects();
    this.#stopProgress();
    for (const [key, feed] of this.#feeds) this.#drop(key, feed);
  }

  #acquire(key: string, workspace: string, sessionId: string): Feed {
    const feed = this.#feeds.get(key) ?? this.#open(workspace, sessionId);
    this.#feeds.set(key, feed);
    this.#stopLinger(key, feed);
    this.#poller.postpone(feed);
    return feed;
  }

  #release(key: string, feed: Feed, follower: Follower): void {
    follower.reader.close();
    feed.followers.delete(follower);
    if (feed.followers.size > 0 || feed.linger) return;
    feed.linger = setTimeout(() => this.#drop(key, feed), LINGER_MS).unref();
    this.#lingering.set(key, feed);
    const [first] = this.#lingering;
    if (first && this.#lingering.size > MAX_LINGERING) this.#drop(...first);
  }

  #stopLinger(key: string, feed: Feed): void {
    if (feed.linger) clearTimeout(feed.linger);
    feed.linger = null;
    this.#lingering.delete(key);
  }

  #drop(key: string, feed: Feed): void {
    this.#stopLinger(key, feed);
    feed.unsubscribe();
    feed.early.clear();
    this.#poller.remove(feed);
    this.#feeds.delete(key);
  }

  #open(workspace: string, sessionId: string): Feed {
    const subject = liveSubject(workspace, sessionId);
    const endLive = this.#bus.subscribe(subject, (text) => this.#onLive(feed, text));
    const endTurns = this.#bus.subscribe(turnEndSubject(workspace, sessionId), (turnId) =>
      notifyOfEnd(feed, turnId),
    );
    const followers = new Set<Follower>();
    const feed: Feed = {
      workspace,
      sessionId,
      followers,
      isWaiting: () => [...feed.followers].some(isWaiting),
      onPolled: (hasGrown) => void this.#onPolled(feed, hasGrown),
      unsubscribe: () => (endLive(), endTurns()),
      live: new LiveReplay((since, each) => this.#bus.replay(subject, since, each)),
      fanOut: new FanOut(followers),
      early: new EarlyFrames(),
      subscribed: null,
      epoch: 0,
      linger: null,
    };
    this.#poller.add(feed);
    return feed;
  }

  #onLive(feed: Feed, text: string): void {
    const receivedAt = performance.now();
    this.#poller.postpone(feed);
    const frame = parseLive(text);
    if (!frame || frame.epoch < feed.epoch) return;
    feed.epoch = frame.epoch;
    if (!hasFollowerOf(feed, frame.turnId)) feed.early.add(frame, text.length);
    feed.fanOut.send(frame);
    if (frame.event === 'done') recordTurnStage('frame_delivered', receivedAt);
  }

  #onProgress(text: string): void {
    const { workspace, sessionId, ...progress } = ToolProgress.parse(JSON.parse(text));
    const feed = this.#feeds.get(`${workspace}/${sessionId}`);
    for (const { reader } of feed?.followers ?? []) reader.pushProgress(progress);
  }

  /**
   * Reads the log once NATS has the subscription; a frame between a read and the subscription would
   * be lost.
   */
  #readPast(feed: Feed, reader: FrameReader): void {
    const read = (): void => void reader.catchUp();
    const timeout = setTimeout(read, SUBSCRIBED_MS).unref();
    feed.subscribed ??= this.#bus.flushSubscriptions();
    void feed.subscribed.finally(() => (clearTimeout(timeout), read()));
  }

  #catchUpAll(): void {
    for (const feed of this.#feeds.values()) {
      feed.subscribed = null;
      for (const { reader } of feed.followers) this.#readPast(feed, reader);
    }
  }

  /** Lets the waiting readers catch up that lack frames of the log, or failed to read it. */
  async #onPolled(feed: Feed, hasGrown: boolean): Promise<void> {
    // One read tells which readers are behind: those of a turn that waits for an approval are not.
    const { lastOffset, openSince } = hasGrown ? await this.#end(feed) : NOTHING_NEW;
    // NATS may have got the first text of an attempt before the subscription. The log lacks it
    // until the attempt ends, and no later text shows the gap while the model pauses.
    const isUnheard = feed.epoch === 0 && openSince !== null;
    for (const follower of feed.followers) {
      if (!isWaiting(follower)) continue;
      if (follower.reader.isBehind(lastOffset)) void follower.reader.catchUp();
      else if (isUnheard) void follower.reader.catchUp(openSince);
    }
  }

  /** Returns the end of the log. After a failure every reader counts as behind. */
  async #end({ workspace, sessionId }: Feed): Promise<LogEnd> {
    try {
      return await this.#log.end(workspace, sessionId);
    } catch {
      // Each reader reports the error to its client.
      return { lastOffset: Number.MAX_SAFE_INTEGER, openSince: null };
    }
  }
}
