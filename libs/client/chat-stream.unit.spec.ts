import { describe, expect, it } from '@jest/globals';
import { ChatStream, parseChatEvent, type ChatEvent } from './chat-stream.js';

const encoder = new TextEncoder();
const eventText = (n: number): string => `id: 1.x.${n}\nevent: text\ndata: {"text":"${n}"}\n\n`;

/** Serves events after the given id, `perConnection` at a time, and then drops the connection. */
const createServer = (last: number, perConnection: number) => {
  const seen: (string | null)[] = [];
  const send = async (_url: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const id = new Headers(init?.headers).get('last-event-id');
    seen.push(id);
    const from = Number(id?.split('.').at(-1) ?? 0);
    const to = Math.min(last, from + perConnection);
    const text = [`id: 1.x.${from}\nevent: ready\ndata: {}\n\n: heartbeat\n\n`];
    for (let n = from + 1; n <= to; n++) text.push(eventText(n));
    // The connection is lost within an event.
    return new Response(encoder.encode(text.join('') + eventText(to + 1).slice(0, -3)));
  };
  return { seen, send: send as typeof fetch };
};
const streamOf = (send: typeof fetch): ChatStream =>
  new ChatStream(
    {
      ...{ urls: ['http://one', 'http://two'], token: undefined, fetch: send },
      ...{ firstDelayMs: 1, maxDelayMs: 2, giveUpAfterMs: 50 },
    },
    { chat: 'tides' },
  );
const take = async (stream: ChatStream, count: number): Promise<ChatEvent[]> => {
  const events: ChatEvent[] = [];
  for await (const event of stream) {
    if (event.event === 'ready') continue;
    events.push(event);
    if (events.length === count) break;
  }
  return events;
};

describe('a chat stream', () => {
  it('yields each event once through connections that are lost, also within an event', async () => {
    const { send, seen } = createServer(20, 3);
    const events = await take(streamOf(send), 20);
    expect(events.map(({ data }) => data['text'])).toEqual(Array.from({ length: 20 }, (_, n) => `${n + 1}`));
    expect(seen.slice(0, 3)).toEqual([null, '1.x.3', '1.x.6']);
  });

  it('resumes after `behind`, and does not show it', async () => {
    let calls = 0;
    const send = (async () =>
      new Response(
        encoder.encode(
          calls++ === 0 ? `${eventText(1)}event: behind\ndata: {"resume":"1.x.1"}\n\n` : eventText(2),
        ),
      )) as typeof fetch;
    expect((await take(streamOf(send), 2)).map(({ id }) => id)).toEqual(['1.x.1', '1.x.2']);
  });

  /** Serves an event, and loses the connection after a time without others. */
  const createIdleBody = (idleMs: number) =>
    new ReadableStream<Uint8Array>({
      start: (controller) => {
        controller.enqueue(encoder.encode(eventText(1)));
        setTimeout(() => controller.error(new TypeError('terminated')), idleMs);
      },
    });

  it('resumes after the loss of a connection that was idle for longer than `giveUpAfterMs`', async () => {
    let calls = 0;
    const send = (async () =>
      new Response(calls++ === 0 ? createIdleBody(80) : encoder.encode(eventText(2)))) as typeof fetch;
    expect((await take(streamOf(send), 2)).map(({ id }) => id)).toEqual(['1.x.1', '1.x.2']);
  });

  it('gives up `giveUpAfterMs` after a loss', async () => {
    let calls = 0;
    let lostAt = 0;
    const send = (async () => {
      if (calls++ === 0) return new Response(createIdleBody(60));
      lostAt ||= performance.now();
      throw new TypeError('fetch failed');
    }) as typeof fetch;
    await expect(take(streamOf(send), 2)).rejects.toMatchObject({ code: 'CLIENT.UNREACHABLE' });
    expect(performance.now() - lostAt).toBeGreaterThanOrEqual(40);
  });

  it('rejects with the gateway’s refusal of an id, and does not try again', async () => {
    let calls = 0;
    const problem = JSON.stringify({ code: 'CHAT.CURSOR_FOREIGN', detail: 'of another chat' });
    const send = (async () => (calls++, new Response(problem, { status: 409 }))) as typeof fetch;
    await expect(take(streamOf(send), 1)).rejects.toMatchObject({ code: 'CHAT.CURSOR_FOREIGN', status: 409 });
    expect(calls).toBe(1);
  });

  it('ends when it is closed', async () => {
    const { send } = createServer(5, 5);
    const stream = streamOf(send);
    for await (const { event } of stream) if (event === 'text') stream.close();
    expect(stream.lastEventId).toMatch(/^1\.x\.\d$/);
  });
});

describe('parseChatEvent', () => {
  it('returns nothing for a comment', () => expect(parseChatEvent(': heartbeat')).toBeUndefined());
});
