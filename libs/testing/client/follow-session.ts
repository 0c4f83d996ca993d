import { sleep } from '@antiphon/kernel';
import { WebSocket } from 'ws';
import type { Incoming, StreamedFrame } from './frames.js';

/** Limits after which a connection is cut, whichever comes first. */
export interface Cut {
  readonly frames: number;
  readonly ms: number;
}

export interface FollowOptions {
  readonly sessionId: string;
  /** Returns the `/ws` address for the next connection. */
  readonly nextUrl: () => string;
  /**
   * Returns the cut of the next connection. Null: the follower does not cut it, and its end is a
   * problem.
   */
  readonly nextCut: () => Cut | null;
  /** Offset after which it starts, default 0: the beginning of the session. */
  readonly after?: number;
}

/** A client that knows `session.resume` and its last offset, and nothing else. */
export interface FollowedSession {
  readonly frames: readonly StreamedFrame[];
  /** Returns the number of connections that have ended. */
  drops(): number;
  /** Returns the number of ended connections that had received frames. */
  dropsInStream(): number;
  /**
   * Violations of the protocol: an offset that does not grow, an error, an unexpected end of a
   * connection.
   */
  readonly problems: readonly string[];
  /**
   * Resolves once a frame with this offset or a later one has arrived; rejects with the first
   * problem.
   */
  waitForOffset(offset: number, timeoutMs?: number): Promise<void>;
  stop(): Promise<void>;
}

const POLL_MS = 20;
/** A gateway that restarts refuses connections for a moment. */
const RECONNECT_MS = 20;

class SessionFollower implements FollowedSession {
  readonly frames: StreamedFrame[] = [];
  readonly problems: string[] = [];
  private lastOffset: number;
  private dropCount = 0;
  private inStreamCount = 0;
  private isStopped = false;
  private socket: WebSocket | null = null;
  private readonly following: Promise<void>;

  constructor(private readonly options: FollowOptions) {
    this.lastOffset = options.after ?? 0;
    this.following = this.follow();
  }

  drops(): number {
    return this.dropCount;
  }

  dropsInStream(): number {
    return this.inStreamCount;
  }

  async waitForOffset(offset: number, timeoutMs = 60_000): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    while (this.lastOffset < offset && this.problems.length === 0) {
      if (performance.now() > deadline)
        throw new Error(
          `session ${this.options.sessionId}: no offset ${offset}; the last one is ${this.lastOffset}`,
        );
      await sleep(POLL_MS);
    }
    if (this.problems.length > 0) throw new Error(this.problems[0]);
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    this.socket?.terminate();
    await this.following;
  }

  private async follow(): Promise<void> {
    while (!this.isStopped) {
      const cut = this.options.nextCut();
      const before = this.frames.length;
      const opened = await this.connectOnce(cut);
      if (this.isStopped) return;
      if (cut === null) this.problems.push('a connection ended that the client had not cut');
      if (this.frames.length > before) this.inStreamCount++;
      if (opened) this.dropCount++;
      else await sleep(RECONNECT_MS);
    }
  }

  /** Reads over one connection until it ends. Returns whether it was opened. */
  private connectOnce(cut: Cut | null): Promise<boolean> {
    const { sessionId, nextUrl } = this.options;
    const params = { sessionId, after: this.lastOffset };
    const request = JSON.stringify({ id: 1, method: 'session.resume', params });
    return new Promise((resolve) => {
      const socket = new WebSocket(nextUrl());
      let framesLeft = cut?.frames ?? Infinity;
      let opened = false;
      const timer = cut ? setTimeout(() => socket.terminate(), cut.ms) : undefined;
      this.socket = socket;
      socket.on('open', () => {
        opened = true;
        socket.send(request);
      });
      socket.on('message', (data: Buffer) => {
        this.onMessage(JSON.parse(data.toString('utf8')) as Incoming);
        if (--framesLeft <= 0) socket.terminate();
      });
      socket.on('error', () => undefined);
      socket.on('close', () => {
        clearTimeout(timer);
        resolve(opened);
      });
    });
  }

  private onMessage({ event, data, offset = 0, error }: Incoming): void {
    const { lastOffset } = this;
    if (error) this.problems.push(`session.resume after ${lastOffset}: ${error.message}`);
    if (event === undefined) return;
    if (offset <= lastOffset) this.problems.push(`${event} has offset ${offset}, after ${lastOffset}`);
    this.lastOffset = Math.max(lastOffset, offset);
    this.frames.push({ event, data, offset });
  }
}

/**
 * Follows a session over connections that are cut and reopened, each time from the last offset that
 * arrived.
 */
export const followSession = (options: FollowOptions): FollowedSession => new SessionFollower(options);
