import { once } from 'node:events';
import { WebSocket } from 'ws';

/** A message of the gateway, parsed. */
export interface Incoming {
  readonly type?: string;
  readonly id?: unknown;
  readonly event?: string;
  readonly data?: unknown;
  readonly offset?: number;
  readonly result?: unknown;
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data?: Record<string, unknown>;
  };
}

export interface StreamedFrame {
  readonly event: string;
  readonly data: unknown;
  readonly offset: number;
}

/** The frames of one request as they come. */
export interface FrameStream {
  readonly id: number;
  readonly frames: readonly StreamedFrame[];
  /** Settles with the first frame (also one that came already) that the condition holds for. */
  until(what: string, condition: (frame: StreamedFrame) => boolean): Promise<StreamedFrame>;
  /** Settles with all frames once `done` came; fails when the request was answered by an error. */
  done(): Promise<readonly StreamedFrame[]>;
}

export interface SocketClient {
  readonly socket: WebSocket;
  /** Everything that came, in order. */
  readonly received: readonly Incoming[];
  /** Settles with the first message (also one that came already) that the condition holds for. */
  until(what: string, condition: (message: Incoming) => boolean): Promise<Incoming>;
  sendRaw(text: string): void;
  /** Sends a request; the answer's result, or its error as thrown by `answer`. */
  call(method: string, params?: unknown): Promise<unknown>;
  stream(method: string, params: unknown): FrameStream;
  /** Settles with the close code. */
  readonly closed: Promise<number>;
  close(): Promise<void>;
}

/** Beyond this a fact that a test waits for counts as missing. */
const DEADLINE_MS = 60_000;

type Waiter = { readonly check: () => boolean; readonly fail: (error: Error) => void };

const createWaiting = () => {
  const waiters = new Set<Waiter>();
  let over: Error | undefined;
  return {
    wake: () => [...waiters].forEach((waiter) => waiter.check() && waiters.delete(waiter)),
    /** Nothing comes any more: who waits now, or asks later for what has not come, does so in vain. */
    fail: (error: Error) => {
      over = error;
      waiters.forEach((waiter) => waiter.fail(error));
    },
    forFact: <T>(what: string, find: () => T | undefined): Promise<T> =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => waiter.fail(new Error(`waited in vain for ${what}`)), DEADLINE_MS);
        const settle = (finish: () => void) => {
          clearTimeout(timer);
          waiters.delete(waiter);
          finish();
        };
        const waiter: Waiter = {
          check: () => {
            const found = find();
            if (found !== undefined) settle(() => resolve(found));
            return found !== undefined;
          },
          fail: (error) => settle(() => reject(error)),
        };
        waiters.add(waiter);
        if (!waiter.check() && over) waiter.fail(over);
      }),
  };
};

const failureOf = ({ error }: Incoming): Error =>
  Object.assign(new Error(error?.message ?? 'no error'), { rpc: error });

/** A client with nothing but `ws`: what an application developer would write in ten minutes. */
export const connectClient = async (
  url: string,
  headers: Record<string, string> = {},
): Promise<SocketClient> => {
  const socket = new WebSocket(url, { headers });
  const received: Incoming[] = [];
  const streams = new Map<number, (message: Incoming) => void>();
  const waiting = createWaiting();
  let nextId = 1;
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString('utf8')) as Incoming;
    received.push(message);
    if (typeof message.id === 'number') streams.get(message.id)?.(message);
    waiting.wake();
  });
  const closed = new Promise<number>((resolve) =>
    socket.once('close', (code) => {
      resolve(code);
      waiting.fail(new Error(`the connection closed with ${code}`));
    }),
  );
  const until = (what: string, condition: (message: Incoming) => boolean): Promise<Incoming> =>
    waiting.forFact(what, () => received.find(condition));

  const send = (method: string, params: unknown): number => {
    const id = nextId++;
    socket.send(JSON.stringify({ id, method, ...(params === undefined ? {} : { params }) }));
    return id;
  };

  const stream = (method: string, params: unknown): FrameStream => {
    const id = send(method, params);
    const own: StreamedFrame[] = [];
    let refused: Incoming | undefined;
    streams.set(id, (message) => {
      if (message.event !== undefined) own.push(message as StreamedFrame);
      else if (message.error) refused = message;
    });
    const untilFrame = async (
      what: string,
      condition: (frame: StreamedFrame) => boolean,
    ): Promise<StreamedFrame> => {
      let looked = 0;
      const found = await waiting.forFact(what, () => {
        const next = own.slice(looked).find(condition);
        looked = own.length;
        return next ?? refused;
      });
      if (found === refused) throw failureOf(refused as Incoming);
      return found as StreamedFrame;
    };
    return {
      id,
      get frames() {
        return [...own];
      },
      until: untilFrame,
      done: async () => {
        await untilFrame('done', ({ event }) => event === 'done');
        return [...own];
      },
    };
  };

  await Promise.race([
    once(socket, 'open'),
    once(socket, 'unexpected-response').then(([, response]: unknown[]) => {
      throw new Error(`upgrade refused with ${(response as { statusCode: number }).statusCode}`);
    }),
  ]);
  return {
    socket,
    received,
    until,
    closed,
    stream,
    sendRaw: (text) => socket.send(text),
    call: async (method, params) => {
      const id = send(method, params);
      const answer = await until(
        `the answer to ${method}`,
        (message) => message.id === id && message.event === undefined,
      );
      if (answer.error) throw failureOf(answer);
      return answer.result;
    },
    close: async () => {
      socket.terminate();
      await closed;
    },
  };
};
