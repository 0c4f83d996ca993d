import { isTurnEnd, liveSubject, sessionStream } from '@antiphon/contracts/agent';
import { eventSubject } from '@antiphon/contracts/log';
import { z } from 'zod';
import type { FrameLog } from './frame-log.js';
import { FrameReader, type FrameReaderOptions } from './frame-reader.js';
import { LiveReplay, parseLive } from './live-replay.js';

/** Part of the message bus that the feeds use. */
export interface FrameBus {
  /** Calls back with each message's text. Returns the function that ends the subscription. */
  subscribe(subject: string, onMessage: (text: string) => void): () => void;
  /**
   * Calls back with the type of each event of a subject, from the message's header, and a function
   * that parses the event. Returns the function that ends the subscription.
   */
  subscribeToEvents(subject: string, onEvent: (type: string, parse: () => unknown) => void): () => void;
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
 * Interval at which a waiting reader of a quiet session polls the log, ms: live frames and events
 * may get lost.
 */
const QUIET_MS = 1_000;
/**
 * Timeout for NATS to confirm a subscription, ms. The log is then read anyway, and again after the
 * confirmation.
 */
const SUBSCRIBED_MS = 250;
/** Time for which a feed without readers stays subscribed for the next turn, ms. */
const LINGER_MS = 30_000;

interface Follower {
  readonly reader: FrameReader;
  /** Turn that it waits for; undefined for a follower of the whole session. */
  readonly turnId: string | undefined;
}

/** Subscriptions of one session, shared by its readers. */
interface Feed {
  readonly followers: Set<Follower>;
  readonly unsubscribe: () => void;
  readonly live: LiveReplay;
  /** Resolves once NATS has its subscriptions; null if nothing waits for that yet. */
  subscribed: Promise<void> | null;
  lastMessageAt: number;
  /**
   * Highest epoch seen. Frames of a lower epoch come from a driver that lost the session, and are
   * dropped.
   */
  epoch: number;
  linger: NodeJS.Timeout | null;
}

const TurnEndMessage = z.object({ data: z.object({ turnId: z.uuid() }) });

const notifyOfEnd = ({ followers }: Feed, turnId: string): void => {
  setTimeout(() => {
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
  readonly #now: () => number;
  readonly #feeds = new Map<string, Feed>();
  readonly #stopReconnects: () => void;
  readonly #poll: NodeJS.Timeout;

  constructor(bus: FrameBus, log: FrameLog, now: () => number) {
    this.#bus = bus;
    this.#log = log;
    this.#now = now;
    this.#stopReconnects = bus.onReconnect(() => this.#catchUpAll());
    this.#poll = setInterval(() => this.#pollQuietFeeds(), QUIET_MS).unref();
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
    return () => this.#release(key, feed, follower);
  }

  close(): void {
    clearInterval(this.#poll);
    this.#stopReconnects();
    for (const [key, feed] of this.#feeds) {
      if (feed.linger) clearTimeout(feed.linger);
      this.#drop(key, feed);
    }
  }

  #acquire(key: string, workspace: string, sessionId: string): Feed {
    const feed = this.#feeds.get(key) ?? this.#open(workspace, sessionId);
    this.#feeds.set(key, feed);
    if (feed.linger) clearTimeout(feed.linger);
    feed.linger = null;
    return feed;
  }

  #release(key: string, feed: Feed, follower: Follower): void {
    follower.reader.close();
    feed.followers.delete(follower);
    if (feed.followers.size > 0 || feed.linger) return;
    feed.linger = setTimeout(() => this.#drop(key, feed), LINGER_MS).unref();
  }

  #drop(key: string, feed: Feed): void {
    feed.unsubscribe();
    this.#feeds.delete(key);
  }

  #open(workspace: string, sessionId: string): Feed {
    const stream = { workspace, category: 'session', streamId: sessionStream(sessionId) };
    const subject = liveSubject(workspace, sessionId);
    const endLive = this.#bus.subscribe(subject, (text) => this.#onLive(feed, text));
    const endEvents = this.#bus.subscribeToEvents(eventSubject(stream), (type, parse) => {
      if (!isTurnEnd(type)) return;
      const message = TurnEndMessage.safeParse(parse());
      if (message.success) notifyOfEnd(feed, message.data.data.turnId);
    });
    const feed: Feed = {
      followers: new Set(),
      unsubscribe: () => (endLive(), endEvents()),
      live: new LiveReplay((since, each) => this.#bus.replay(subject, since, each)),
      subscribed: null,
      lastMessageAt: this.#now(),
      epoch: 0,
      linger: null,
    };
    return feed;
  }

  #onLive(feed: Feed, text: string): void {
    feed.lastMessageAt = this.#now();
    const frame = parseLive(text);
    if (!frame || frame.epoch < feed.epoch) return;
    feed.epoch = frame.epoch;
    for (const { reader } of feed.followers) reader.push(frame);
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

  /** Polls only for readers that wait for something: a reader of an idle session costs nothing. */
  #pollQuietFeeds(): void {
    for (const { lastMessageAt, followers } of this.#feeds.values()) {
      if (this.#now() - lastMessageAt < QUIET_MS) continue;
      for (const { reader, turnId } of followers)
        if (turnId !== undefined || reader.expectsMore()) void reader.catchUp();
    }
  }
}
