import { isTurnEnd, liveSubject, sessionStream, type Frame } from '@antiphon/contracts/agent';
import { eventSubject } from '@antiphon/contracts/log';
import { createFrameReader, type FrameReader, type FrameReaderOptions } from './frame-reader.js';
import type { FrameLog } from './frame-log.js';
import { createLiveRecalls, parseLive, type LiveRecalls } from './live-recalls.js';
import { z } from 'zod';

/** What the feeds need of the message bus. */
export interface FrameBus {
  /** Calls back with each message's text; answers the function that ends the subscription. */
  subscribe(subject: string, onMessage: (text: string) => void): () => void;
  /**
   * Calls back with the type of each event of a subject, from the message's header, and a function that parses the
   * event. Returns the function that ends the subscription.
   */
  subscribeToEvents(subject: string, onEvent: (type: string, parse: () => unknown) => void): () => void;
  /** Settles once the server knows of every subscription so far (one round trip), or cannot be asked. */
  subscribed(): Promise<void>;
  /** Calls back with what `LIVE` still holds of a subject from a time on (ms), oldest first; settles at its end. */
  recall(subject: string, since: number, each: (text: string) => void): Promise<void>;
  /** Calls back when it is there again after an outage: what was sent meanwhile did not come. */
  onReconnect(listener: () => void): () => void;
}

export interface FollowOptions {
  readonly workspace: string;
  readonly sessionId: string;
  /** See FrameReaderOptions. */
  readonly after: number | null;
  readonly turnId?: string;
  /** Look into the log at once: the past is wanted, not only what comes. */
  readonly catchUp: boolean;
  readonly deliver: (frame: Frame) => void;
  readonly room?: FrameReaderOptions['room'];
  readonly onError: (error: unknown) => void;
}

export interface SessionFeeds {
  /** Follows a session's frames until the answered function is called. */
  follow(options: FollowOptions): () => void;
  close(): void;
}

/** How long a committed end may take to arrive by itself before the log is asked. */
const END_GRACE_MS = 50;
/** How often a waiting reader that hears nothing looks into the log: live frames and hints are not durable. */
const QUIET_MS = 1_000;
/** NATS answers within a millisecond; where it does not, the past is shown without it, and looked at again when it has. */
const SUBSCRIBED_MS = 250;
/** A feed stays subscribed for a while, so that the next turn finds it. */
const LINGER_MS = 30_000;

interface Follower {
  readonly reader: FrameReader;
  /** The turn that it waits for; none for a follower of the whole session. */
  readonly turnId: string | undefined;
}
interface Feed {
  readonly followers: Set<Follower>;
  readonly end: () => void;
  readonly recalls: LiveRecalls;
  /** Settles once NATS knows of its subscriptions; null: nobody has asked yet. */
  subscribed: Promise<void> | null;
  heardAt: number;
  /** Highest that was heard: who sends under a lower one has lost the session, and is not heard any more. */
  epoch: number;
  linger: NodeJS.Timeout | null;
}

const TurnEndMessage = z.object({ data: z.object({ turnId: z.uuid() }) });

export const createSessionFeeds = (bus: FrameBus, log: FrameLog, now: () => number): SessionFeeds => {
  const feeds = new Map<string, Feed>();

  const onEnd = (feed: Feed, turnId: string): void => {
    setTimeout(() => {
      for (const { reader, turnId: own } of feed.followers)
        if ((own ?? turnId) === turnId && !reader.hasSeenDone(turnId)) void reader.catchUp();
    }, END_GRACE_MS).unref();
  };

  const open = (workspace: string, sessionId: string): Feed => {
    const followers = new Set<Follower>();
    const stream = { workspace, category: 'session', streamId: sessionStream(sessionId) };
    const live = liveSubject(workspace, sessionId);
    const endLive = bus.subscribe(live, (text) => {
      feed.heardAt = now();
      const frame = parseLive(text);
      if (!frame || frame.epoch < feed.epoch) return;
      feed.epoch = frame.epoch;
      for (const { reader } of followers) reader.push(frame);
    });
    const endEvents = bus.subscribeToEvents(eventSubject(stream), (type, parse) => {
      if (!isTurnEnd(type)) return;
      const message = TurnEndMessage.safeParse(parse());
      if (message.success) onEnd(feed, message.data.data.turnId);
    });
    const end = () => (endLive(), endEvents());
    const recalls = createLiveRecalls((since, each) => bus.recall(live, since, each));
    const state = { subscribed: null, heardAt: now(), epoch: 0, linger: null };
    const feed: Feed = { followers, end, recalls, ...state };
    return feed;
  };

  const drop = (key: string, feed: Feed): void => {
    feed.end();
    feeds.delete(key);
  };

  const leave = (key: string, feed: Feed, follower: Follower): void => {
    follower.reader.close();
    feed.followers.delete(follower);
    if (feed.followers.size > 0 || feed.linger) return;
    feed.linger = setTimeout(() => drop(key, feed), LINGER_MS).unref();
  };

  const enter = (key: string, options: FollowOptions): Feed => {
    const feed = feeds.get(key) ?? open(options.workspace, options.sessionId);
    feeds.set(key, feed);
    if (feed.linger) clearTimeout(feed.linger);
    feed.linger = null;
    return feed;
  };

  /** First NATS has to know of the subscription, then the past is read: what comes meanwhile would be in neither. */
  const readPast = (feed: Feed, reader: FrameReader): void => {
    const look = (): void => void reader.catchUp();
    const impatient = setTimeout(look, SUBSCRIBED_MS).unref();
    feed.subscribed ??= bus.subscribed();
    void feed.subscribed.finally(() => (clearTimeout(impatient), look()));
  };

  /** Whoever waits for something must not depend on a hint; who follows a session in which nothing happens costs nothing. */
  const lookAfter = ({ heardAt, followers }: Feed): void => {
    if (now() - heardAt < QUIET_MS) return;
    for (const { reader, turnId } of followers)
      if (turnId !== undefined || reader.expectsMore()) void reader.catchUp();
  };
  const lookAfterAll = (): void => {
    for (const feed of feeds.values()) {
      feed.subscribed = null;
      for (const { reader } of feed.followers) readPast(feed, reader);
    }
  };
  const endReconnects = bus.onReconnect(lookAfterAll);
  const lookAfterQuietOnes = setInterval(() => [...feeds.values()].forEach(lookAfter), QUIET_MS).unref();

  return {
    follow: (options) => {
      const { workspace, sessionId, after, turnId, deliver, room, onError } = options;
      const key = `${workspace}/${sessionId}`;
      const feed = enter(key, options);
      const reader = createFrameReader({
        after,
        ...(turnId === undefined ? {} : { turnId }),
        deliver,
        ...(room ? { room } : {}),
        onError,
        committed: (from) => log.framesAfter(workspace, sessionId, from),
        live: feed.recalls.after,
      });
      const follower: Follower = { reader, turnId };
      feed.followers.add(follower);
      if (options.catchUp) readPast(feed, reader);
      return () => leave(key, feed, follower);
    },
    close: () => {
      clearInterval(lookAfterQuietOnes);
      endReconnects();
      for (const [key, feed] of feeds) {
        if (feed.linger) clearTimeout(feed.linger);
        drop(key, feed);
      }
    },
  };
};
