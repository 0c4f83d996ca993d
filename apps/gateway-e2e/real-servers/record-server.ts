import { once } from 'node:events';
import { createServer, request, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestStack } from '@antiphon/testing/stack';
import { readEvents, waitForValue, type LoggedEvent } from '../stack-under-test.js';

/** A request to a server, and the bytes of its response so far. */
export interface RecordedCall {
  readonly path: string;
  readonly body: string;
  readonly response: () => string;
  /** Resolves when the connection to the server is over. */
  readonly closed: Promise<void>;
}

export interface Recorder {
  /** `http://127.0.0.1:PORT`, which passes everything on to the server. */
  readonly url: string;
  readonly calls: readonly RecordedCall[];
  close(): Promise<void>;
}

const readAll = async (incoming: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
};

/** Passes requests on to a server byte for byte, and keeps them with their responses. */
export const startRecorder = async (target: string): Promise<Recorder> => {
  const calls: RecordedCall[] = [];
  const server = createServer((incoming, response) => {
    void readAll(incoming).then((body) => {
      const { host: _host, ...headers } = incoming.headers;
      const ended = Promise.withResolvers<void>();
      let text = '';
      calls.push({
        path: incoming.url ?? '',
        body: body.toString('utf8'),
        response: () => text,
        closed: ended.promise,
      });
      const options = { method: incoming.method, headers, agent: false };
      const outgoing = request(new URL(incoming.url ?? '', target), options, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
        answer.pipe(response);
      });
      outgoing.on('error', () => response.destroy());
      outgoing.on('close', () => ended.resolve());
      response.on('close', () => outgoing.destroy());
      outgoing.end(body);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
};

interface Counted {
  readonly prompt_tokens?: number;
  readonly completion_tokens?: number;
  readonly input_tokens?: number;
  readonly output_tokens?: number;
}

/** Returns the usage that a stream reports, its last figures. Null if it reports none. */
export const reportedUsage = (stream: string): { input: number; output: number } | null => {
  const events = stream
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map(
      (line) => JSON.parse(line.slice('data: '.length)) as { usage?: Counted; message?: { usage?: Counted } },
    );
  const usages = events.flatMap(({ usage, message }) => [message?.usage, usage]).filter((usage) => !!usage);
  if (usages.length === 0) return null;
  const all: Counted = Object.assign({}, ...usages) as Counted;
  return {
    input: all.prompt_tokens ?? all.input_tokens ?? 0,
    output: all.completion_tokens ?? all.output_tokens ?? 0,
  };
};

/** Returns the ends of the reservations of a session, once each has one. */
export const readReservationEnds = (stack: TestStack, sessionId: string): Promise<LoggedEvent[]> =>
  waitForValue('the end of each reservation', async () => {
    const events = await readEvents(stack, { category: 'budget' });
    const own = new Set(
      events
        .filter(({ type, data }) => type === 'BudgetReserved' && data['sessionId'] === sessionId)
        .map(({ data }) => data['reservationId']),
    );
    const ends = events.filter(
      ({ type, data }) => /^Budget(?:Settled|Released|Expired)$/.test(type) && own.has(data['reservationId']),
    );
    return own.size > 0 && ends.length === own.size ? ends : undefined;
  });
