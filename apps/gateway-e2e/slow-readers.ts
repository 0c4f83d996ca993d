import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { connectClient } from '@antiphon/testing/client';
import type { FrameStream, SocketClient } from '@antiphon/testing/client';
import type { TestStack } from '@antiphon/testing/stack';

/** A session whose turns are streamed to its own client, and to every reader. */
export interface StreamedSession {
  readonly client: SocketClient;
  readonly sessionId: string;
  /** Offset of the last frame of its first turn, after which readers start. */
  readonly begins: number;
  /** Sends a turn. Resolves when it is done. */
  send(content: string): Promise<void>;
  /** Returns the offset of the last `done` so far. */
  lastOffset(): number;
}

/** A client that resumes a session and then reads no byte, though it answers pings. */
export interface StalledReader {
  readonly client: SocketClient;
  readonly connectionId: string;
  readonly session: StreamedSession;
  readonly stream: FrameStream;
  readonly ended: Promise<{ readonly code: number; readonly reason: string }>;
}

export const startStreamedSession = async (wsUrl: string, peer: string): Promise<StreamedSession> => {
  const client = await connectClient(wsUrl);
  let lastOffset = 0;
  const send = async (content: string) => {
    const address = { channel: 'test', account: 'slow', peer, agent: 'gpt' };
    const frames = await client.stream('chat.send', { ...address, content }).done();
    lastOffset = frames.at(-1)?.offset ?? 0;
    return frames;
  };
  const [accepted] = await send('begin');
  const { sessionId } = accepted?.data as { sessionId: string };
  return {
    client,
    sessionId,
    begins: lastOffset,
    send: async (content) => void (await send(content)),
    lastOffset: () => lastOffset,
  };
};

/** The gateway closes a client that is silent for half a minute. */
const PONG_MS = 5_000;

export const openStalledReader = async (wsUrl: string, session: StreamedSession): Promise<StalledReader> => {
  const client = await connectClient(wsUrl);
  const { socket } = client;
  const ack = await client.waitFor('session.ack', ({ type }) => type === 'session.ack');
  const { sessionId, begins } = session;
  const stream = client.stream('session.resume', { sessionId, after: begins });
  socket.pause();
  const pongs = setInterval(() => socket.pong(), PONG_MS);
  socket.once('close', () => clearInterval(pongs));
  const ended = new Promise<{ code: number; reason: string }>((resolve) =>
    socket.once('close', (code, reason) => resolve({ code, reason: reason.toString('utf8') })),
  );
  const { connectionId } = ack as unknown as { connectionId: string };
  return { client, connectionId, session, stream, ended };
};

/** Resumes the session like a stalled reader does, but reads everything. */
export const openReader = async (
  wsUrl: string,
  { sessionId, begins }: StreamedSession,
): Promise<WebSocket> => {
  const socket = new WebSocket(wsUrl);
  await once(socket, 'open');
  socket.on('message', () => undefined);
  socket.send(JSON.stringify({ id: 1, method: 'session.resume', params: { sessionId, after: begins } }));
  return socket;
};

/** Reads from the gateway's log which connections it has closed with 1013. */
export const slowConnectionIds = (stack: TestStack): ReadonlySet<string> =>
  new Set(
    stack
      .readLog('gateway-1')
      .split('\n')
      .filter((line) => line.includes('slow client closed'))
      .flatMap((line) => /"connectionId":"([^"]+)"/.exec(line)?.[1] ?? []),
  );

const SAMPLE_MS = 50;

/** Samples the resident memory of the gateway's process. `stop` returns the peak in bytes. */
export const watchMemory = (stack: TestStack): { stop(): number } => {
  const [gateway] = stack.stackJson().services.gateway;
  let peak = 0;
  const sample = (): void => {
    const status = readFileSync(`/proc/${gateway?.pid}/status`, 'utf8');
    peak = Math.max(peak, Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024);
  };
  const timer = setInterval(sample, SAMPLE_MS);
  return {
    stop: () => {
      clearInterval(timer);
      sample();
      return peak;
    },
  };
};
