import type { Client, ClientOptions, EventItem, TurnFrame, WebSocketLike } from '@antiphon/client';

export interface UseClientOptions {
  /** Module of the library, as the runtime names it. */
  readonly library: string;
  readonly urls: readonly string[];
  readonly peers: readonly string[];
}

/** Frames and text of one turn, as a program got them. */
export interface SeenTurn {
  readonly sessionId: string;
  readonly content: string;
  readonly text: string;
  readonly frames: readonly TurnFrame[];
}

export interface SeenByClient {
  readonly turns: readonly SeenTurn[];
  readonly positions: readonly number[];
  /** Number of connections that were lost after they had received frames. */
  readonly drops: number;
}

/** Functions of the spec that the program calls, in Node and on the page. */
export interface SpecHooks {
  isOver(drops: number): Promise<boolean>;
  /** Returns the position of the last event of the log. */
  readLastPosition(): Promise<number>;
}

/**
 * Uses the library as a program does: several conversations at once, and all events of the log,
 * until the spec ends it. It refers to nothing of this module, so that a page can run it, too.
 */
export const useClient = async (options: UseClientOptions): Promise<SeenByClient> => {
  const { library, urls, peers } = options;
  const { createClient } = (await import(library)) as { createClient(options: ClientOptions): Client };
  const { isOver, readLastPosition } = globalThis as unknown as SpecHooks;
  const kinds = ['tell me', 'tell me more', 'a sum', 'flaky'];
  const turns: SeenTurn[] = [];
  const positions: number[] = [];
  let drops = 0;

  const openWebSocket = (url: string): WebSocketLike => {
    const socket = new WebSocket(url);
    let hasFrames = false;
    socket.addEventListener('message', ({ data }) => (hasFrames ||= String(data).includes('"event"')));
    socket.addEventListener('close', () => (drops += hasFrames ? 1 : 0));
    return socket as unknown as WebSocketLike;
  };
  const backoff = { firstMs: 20, maxMs: 200 };
  const client = createClient({ url: urls, openWebSocket, backoff, giveUpAfterMs: 60_000 });

  const converse = async (peer: string): Promise<void> => {
    for (let n = 0; n === 0 || !(await isOver(drops)); n++) {
      const content = `${kinds[n % kinds.length]} ${peer} ${n}`;
      const turn = client.chat({ channel: 'load', account: 'load', peer, content });
      const frames: TurnFrame[] = [];
      for await (const frame of turn) frames.push(frame);
      const { sessionId } = await turn.accepted;
      turns.push({ sessionId, content, text: await turn.text(), frames });
    }
  };
  const events = client.events({ from: 'start' });
  const readEvents = async (): Promise<void> => {
    for await (const { event } of events as AsyncIterable<EventItem>) positions.push(event.position);
  };

  const reading = readEvents();
  await Promise.all(peers.map(converse));
  const lastPosition = await readLastPosition();
  while ((positions.at(-1) ?? 0) < lastPosition) await new Promise((resolve) => setTimeout(resolve, 20));
  events.detach();
  await reading;
  client.close();
  return { turns, positions, drops };
};
