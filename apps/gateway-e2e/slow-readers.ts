import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { connectClient } from '@antiphon/testing/client';
import type { FrameStream, SocketClient } from '@antiphon/testing/client';
import type { TestStack } from '@antiphon/testing/stack';

/** A session that somebody speaks in, and hears. */
export interface Story {
  readonly client: SocketClient;
  readonly sessionId: string;
  /** Offset of the last frame of its first turn. */
  readonly begins: number;
  /** Settles when the turn is done. */
  say(content: string): Promise<void>;
  /** Offset of the last `done` so far. */
  last(): number;
}

/** A client that has asked for a session, and then does not read a byte, though it says that it lives. */
export interface Deaf {
  readonly client: SocketClient;
  readonly connectionId: string;
  readonly story: Story;
  readonly stream: FrameStream;
  readonly ended: Promise<{ readonly code: number; readonly reason: string }>;
}

export const beginStory = async (wsUrl: string, peer: string): Promise<Story> => {
  const client = await connectClient(wsUrl);
  let last = 0;
  const say = async (content: string) => {
    const to = { channel: 'test', account: 'slow', peer, agent: 'gpt' };
    const frames = await client.stream('chat.send', { ...to, content }).done();
    last = frames.at(-1)?.offset ?? 0;
    return frames;
  };
  const [accepted] = await say('begin');
  const { sessionId } = accepted?.data as { sessionId: string };
  return {
    client,
    sessionId,
    begins: last,
    say: async (content) => void (await say(content)),
    last: () => last,
  };
};

/** Who is silent for half a minute is taken for dead. */
const LIVES_MS = 5_000;

/** Asks for what comes in a session from now on, and reads nothing of it. */
export const turnAway = async (wsUrl: string, story: Story): Promise<Deaf> => {
  const client = await connectClient(wsUrl);
  const { socket } = client;
  const ack = await client.waitFor('session.ack', ({ type }) => type === 'session.ack');
  const stream = client.stream('session.resume', { sessionId: story.sessionId, after: story.begins });
  socket.pause();
  const lives = setInterval(() => socket.pong(), LIVES_MS);
  socket.once('close', () => clearInterval(lives));
  const ended = new Promise<{ code: number; reason: string }>((resolve) =>
    socket.once('close', (code, reason) => resolve({ code, reason: reason.toString('utf8') })),
  );
  const { connectionId } = ack as unknown as { connectionId: string };
  return { client, connectionId, story, stream, ended };
};

/** Asks for the same, reads everything, and keeps nothing. */
export const listen = async (wsUrl: string, { sessionId, begins }: Story): Promise<WebSocket> => {
  const socket = new WebSocket(wsUrl);
  await once(socket, 'open');
  socket.on('message', () => undefined);
  socket.send(JSON.stringify({ id: 1, method: 'session.resume', params: { sessionId, after: begins } }));
  return socket;
};

/** The connections that the gateway says it has closed for being slow. */
export const closedSlow = (stack: TestStack): ReadonlySet<string> =>
  new Set(
    stack
      .readLog('gateway-1')
      .split('\n')
      .filter((line) => line.includes('client reads too slowly'))
      .flatMap((line) => /"connectionId":"([^"]+)"/.exec(line)?.[1] ?? []),
  );

const SAMPLE_MS = 50;

/** Watches the memory of the gateway's process; `stop` answers the most that was resident, in bytes. */
export const peakMemory = (stack: TestStack): { stop(): number } => {
  const [gateway] = stack.stackJson().services.gateway;
  let peak = 0;
  const look = (): void => {
    const status = readFileSync(`/proc/${gateway?.pid}/status`, 'utf8');
    peak = Math.max(peak, Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024);
  };
  const timer = setInterval(look, SAMPLE_MS);
  return {
    stop: () => {
      clearInterval(timer);
      look();
      return peak;
    },
  };
};
