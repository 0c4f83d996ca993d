import { WebSocket } from 'ws';
import type { Incoming, StreamedFrame } from './socket-client.js';

/** When a connection is cut: after so many frames or ms, whichever comes first. */
export interface Cut {
  readonly frames: number;
  readonly ms: number;
}

export interface FollowOptions {
  readonly sessionId: string;
  /** The `/ws` address of the gateway for the next connection. */
  readonly door: () => string;
  /** For the next connection; null: it is never cut, and nobody else may end it either. */
  readonly cut: () => Cut | null;
  /** Where it begins, default 0: at the session's beginning. */
  readonly after?: number;
}

/** A client that knows `session.resume` and its last offset, and nothing else. */
export interface FollowedSession {
  readonly frames: readonly StreamedFrame[];
  /** Connections that have ended so far. */
  drops(): number;
  /** Those of them that had brought frames. */
  dropsInStream(): number;
  /** What no client may see: an offset that does not grow, an answer that is an error. */
  readonly problems: readonly string[];
  /** Settles once a frame with this offset or a later one has come; throws with the first problem. */
  until(offset: number, timeoutMs?: number): Promise<void>;
  stop(): Promise<void>;
}

const LOOK_MS = 20;
/** A gateway that is being started again refuses for a moment. */
const AGAIN_MS = 20;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** One connection, from its opening to its end; answers whether it came about. */
const visit = (
  url: string,
  request: string,
  cut: Cut | null,
  onMessage: (message: Incoming) => void,
  onSocket: (socket: WebSocket) => void,
): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = new WebSocket(url);
    let left = cut?.frames ?? Infinity;
    let opened = false;
    const timer = cut ? setTimeout(() => socket.terminate(), cut.ms) : undefined;
    onSocket(socket);
    socket.on('open', () => {
      opened = true;
      socket.send(request);
    });
    socket.on('message', (data: Buffer) => {
      onMessage(JSON.parse(data.toString('utf8')) as Incoming);
      if (--left <= 0) socket.terminate();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearTimeout(timer);
      resolve(opened);
    });
  });

/** Follows a session over connections that are cut and opened again, each time from the last offset that came. */
export const followSession = ({ sessionId, door, cut, after = 0 }: FollowOptions): FollowedSession => {
  const frames: StreamedFrame[] = [];
  const problems: string[] = [];
  let last = after;
  let drops = 0;
  let inStream = 0;
  let stopped = false;
  let current: WebSocket | null = null;

  const onMessage = ({ event, data, offset = 0, error }: Incoming): void => {
    if (error) problems.push(`session.resume after ${last}: ${error.message}`);
    if (event === undefined) return;
    if (offset <= last) problems.push(`${event} has offset ${offset}, after ${last}`);
    last = Math.max(last, offset);
    frames.push({ event, data, offset });
  };
  const follow = async (): Promise<void> => {
    while (!stopped) {
      const next = cut();
      const params = { sessionId, after: last };
      const request = JSON.stringify({ id: 1, method: 'session.resume', params });
      const before = frames.length;
      const opened = await visit(door(), request, next, onMessage, (socket) => (current = socket));
      if (stopped) return;
      if (next === null) problems.push('a connection ended that nobody had cut');
      if (frames.length > before) inStream++;
      if (opened) drops++;
      else await pause(AGAIN_MS);
    }
  };
  const following = follow();

  return {
    frames,
    problems,
    drops: () => drops,
    dropsInStream: () => inStream,
    until: async (offset, timeoutMs = 60_000) => {
      const deadline = performance.now() + timeoutMs;
      while (last < offset && problems.length === 0) {
        if (performance.now() > deadline)
          throw new Error(`session ${sessionId}: offset ${offset} did not come; the last one is ${last}`);
        await pause(LOOK_MS);
      }
      if (problems.length > 0) throw new Error(problems[0]);
    },
    stop: async () => {
      stopped = true;
      current?.terminate();
      await following;
    },
  };
};
