import { once } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import type { Frame } from '@antiphon/contracts/agent';
import { offsetOfEventId, toEventId } from './chat-cursor.js';
import { ChatPipe, PIPE_LIMITS, renderFrame } from './chat-pipe.js';

const sessionId = '01998f3e-6c1a-7b52-9d0e-5a4c3b2a1f00';
const at = { epoch: 2, sessionId };
const turnId = '01998f3e-6c2b-7d10-8e4f-9a8b7c6d5e40';
const frame = (event: Frame['event'], data: Frame['data'], offset = 7): Frame => ({
  ...{ event, data, offset, prev: offset - 1, turnId },
});

describe('an event id', () => {
  it('is the same for the same frame, and gives its offset back', () => {
    const id = toEventId({ ...at, offset: 1_048_576 });
    expect(id).toBe('2.01998f3e6c1a7b529d0e5a4c3b2a1f00.1048576');
    expect(offsetOfEventId(id, at)).toBe(1_048_576);
  });

  it.each([
    ['malformed', 'x', 'CHAT.CURSOR_MALFORMED'],
    [
      'malformed: an offset beyond exact numbers',
      `2.${'0'.repeat(32)}.9999999999999999`,
      'CHAT.CURSOR_MALFORMED',
    ],
    ['of another chat', `2.${'0'.repeat(32)}.7`, 'CHAT.CURSOR_FOREIGN'],
    ['of the log before a restore', toEventId({ ...at, epoch: 1, offset: 7 }), 'GATEWAY.EPOCH_CHANGED'],
  ])('that is %s is refused by a code of its own', (_name, id, code) => {
    expect(() => offsetOfEventId(id, at)).toThrow(expect.objectContaining({ code }));
  });
});

describe('a frame on the stream of a chat', () => {
  it.each<[Frame['event'], Frame['data'], string, object]>([
    ['text', 'a\nb', 'text', { text: 'a\nb', turnId }],
    ['thought', 'hm', 'thought', { text: 'hm', turnId }],
    ['tool_use', { id: 'c', name: 'echo', input: {} }, 'call', { id: 'c', name: 'echo', input: {}, turnId }],
    ['tool_result', { id: 'c', content: 'x' }, 'observation', { id: 'c', content: 'x', turnId }],
    ['restart', { offset: 5 }, 'restart', { offset: 5, turnId, from: toEventId({ ...at, offset: 5 }) }],
    ['done', { turnId, status: 'completed' }, 'done', { turnId, status: 'completed' }],
  ])('%s is one event with an id and one line of data', (event, data, name, expected) => {
    const [id, named, line, ...rest] = renderFrame(frame(event, data), at).split('\n');
    expect([id, named, rest]).toEqual([`id: ${toEventId({ ...at, offset: 7 })}`, `event: ${name}`, ['', '']]);
    expect(JSON.parse(line?.slice('data: '.length) ?? '')).toEqual(expected);
  });
});

const LIMITS = { ...PIPE_LIMITS, slowBytes: 1_024, maxBytes: 8_192, slowMs: 20, stalledMs: 40, graceMs: 60 };
const pipeOf = (limits = LIMITS): ChatPipe => new ChatPipe({ ...at, offset: 0 }, limits);
const readAll = async (pipe: ChatPipe): Promise<string> => {
  let text = '';
  for await (const chunk of pipe) text += String(chunk);
  return text;
};

describe('a pipe', () => {
  // @shows chats-C5
  it('tells a reader that holds too much where to resume, cuts it, and sends nothing after that', async () => {
    const pipe = pipeOf();
    const ended = once(pipe, 'close');
    let sent = 0;
    for (let offset = 1; offset <= 100; offset++) {
      pipe.deliver(frame('text', 'x'.repeat(500), offset));
      if (pipe.readableLength > sent) sent = pipe.readableLength;
    }
    expect(sent).toBeLessThan(LIMITS.maxBytes + 2_000);
    const resume = pipe.lastId;
    pipe.deliver(frame('text', 'late', 200));
    const text = await readAll(pipe);
    expect(text.endsWith(`event: behind\ndata: {"resume":"${resume}"}\n\n`)).toBe(true);
    expect(text.match(/^id: (.*)$/gm)?.at(-1)).toBe(`id: ${resume}`);
    await ended;
  });

  it('cuts a reader that stays slow while events arrive, and destroys one that reads nothing at all', async () => {
    const pipe = pipeOf();
    const closed = once(pipe, 'close');
    for (let offset = 1; offset <= 4; offset++) pipe.deliver(frame('text', 'x'.repeat(500), offset));
    const held = pipe.readableLength;
    await closed;
    expect(pipe.destroyed).toBe(true);
    expect(held).toBeGreaterThan(LIMITS.slowBytes);
  });

  it('ends a few of many slow readers in each round of the event loop, and all in the end', async () => {
    const limits = { ...LIMITS, graceMs: 60_000 };
    const pipes = Array.from({ length: 10 }, () => pipeOf(limits));
    let cut = 0;
    for (const pipe of pipes) {
      const send = pipe.send.bind(pipe);
      pipe.send = (event, ...rest) => {
        if (event === 'behind') cut++;
        send(event, ...rest);
      };
      pipe.deliver(frame('text', 'x'.repeat(2_000), 1));
    }
    const rounds: number[] = [];
    for (let before = 0; cut < pipes.length; before = cut) {
      await new Promise((resolve) => setImmediate(resolve));
      if (cut > before) rounds.push(cut - before);
    }
    expect(rounds.length).toBeGreaterThan(1);
    expect(Math.max(...rounds)).toBeLessThanOrEqual(4);
    for (const pipe of pipes) pipe.destroy();
  });

  it('has no room for the past while its reader reads nothing, and room again when it reads', async () => {
    const pipe = pipeOf({ ...LIMITS, stalledMs: 5_000, slowMs: 5_000 });
    expect(pipe.waitForRoom()).toBeUndefined();
    pipe.deliver(frame('text', 'x'.repeat(2_000), 1));
    const room = pipe.waitForRoom();
    expect(room).toBeInstanceOf(Promise);
    pipe.read();
    await room;
    expect(pipe.waitForRoom()).toBeUndefined();
    pipe.destroy();
  });

  it('sends heartbeats while nothing happens, and gives up its room when it is destroyed', async () => {
    const pipe = pipeOf({ ...LIMITS, heartbeatMs: 10 });
    await once(pipe, 'readable');
    expect(String(pipe.read())).toMatch(/^: heartbeat\n\n/);
    pipe.deliver(frame('text', 'x'.repeat(2_000), 1));
    const room = pipe.waitForRoom();
    pipe.destroy();
    await room;
    expect(pipe.waitForRoom()).toBeUndefined();
  });
});
