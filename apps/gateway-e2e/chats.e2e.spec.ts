import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { TestStack } from '@antiphon/testing/stack';
import { ChatStream, type ChatEvent } from './chat-stream.js';
import { scriptedConfig, startQuickStack } from './stack-under-test.js';

jest.setTimeout(120_000);

const CONFIG = scriptedConfig(`
[[agents]]
id = "main"
name = "Main"
role = "assistant"
provider = "scripted"
model = "scripted"
tools = ["calculator", "echo"]
`);

interface Chat {
  readonly id: string;
  readonly path: string;
  readonly is_virtual: boolean;
  readonly sessionId: string;
}
interface Reply {
  readonly turnId: string;
  readonly version: number;
  readonly cursor: string;
  readonly joined: boolean;
}

let stack: TestStack;
const streams: ChatStream[] = [];

beforeAll(async () => {
  stack = await startQuickStack(CONFIG, { gateway: 2 });
});
afterAll(async () => {
  for (const stream of streams) stream.close();
  await stack?.stop();
});

const urlOf = (path: string, gateway = 0): string =>
  `${stack.wsUrls()[gateway]?.replace('ws:', 'http:').replace(/\/ws$/, '') ?? ''}/api/v1/workspaces/default/chats${path}`;
const request = async <T>(method: string, path: string, body?: object, key?: string): Promise<T> => {
  const response = await fetch(urlOf(path), {
    method,
    headers: {
      ...(body ? { 'content-type': 'application/json' } : {}),
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${text}`);
  return JSON.parse(text) as T;
};
const create = (name: string): Promise<Chat> => request('POST', '', { name, role: 'assistant' });
const say = (chat: Chat, content: string, key?: string): Promise<Reply> =>
  request('POST', `/${chat.id}`, { command: 'message', content }, key);
const attach = async (chat: Chat, lastEventId?: string, gateway = 0): Promise<ChatStream> => {
  const stream = await ChatStream.open(urlOf(`/${chat.id}/events`, gateway), { lastEventId });
  streams.push(stream);
  return stream;
};
const read = async (chat: Chat, query = ''): Promise<string> =>
  (await fetch(urlOf(`/${encodeURIComponent(chat.id)}${query}`))).text();
const idsAndData = (events: readonly ChatEvent[]) => events.filter(({ event }) => event !== 'ready');

describe('a chat with an agent role', () => {
  // @shows chats-C1
  it('streams the answer with its tool calls, and its text is the .chat file', async () => {
    const chat = await create('sums');
    expect(chat).toMatchObject({ path: 'sums.chat', is_virtual: true });
    const stream = await attach(chat);
    const { turnId, version } = await say(chat, '/tool calculator {"expression":"6*7"}');
    await stream.done();
    const kinds = stream.events.map(({ event }) => event);
    expect(kinds.slice(0, 3)).toEqual(['ready', 'accepted', 'call']);
    expect(kinds.filter((kind) => kind === 'done')).toHaveLength(1);
    expect(kinds.indexOf('observation')).toBeLessThan(kinds.indexOf('text'));
    const text = await read(chat);
    expect(text).toContain('call `calculator` {"expression":"6*7"}\n> result: 42');
    expect(text).toContain(`<!-- ${turnId}-answer -->`);
    expect(await read(chat, `?at=${version}`)).not.toContain('result');
    const listed = await request<{ chats: Chat[] }>('GET', '?limit=200');
    expect(listed.chats.map(({ id }) => id)).toContain(chat.id);
    expect(await request('GET', `/sums?format=json`)).toMatchObject({ chatId: chat.id });
  });

  it('is in the list of another gateway right after it was created', async () => {
    for (let n = 0; n < 30; n += 1) {
      const chat = await create(`listed ${n}`);
      const { chats } = (await (await fetch(urlOf('?limit=200', 1))).json()) as { chats: Chat[] };
      expect(chats.map(({ id }) => id)).toContain(chat.id);
      const sessions = await fetch(urlOf('', 1).replace('/workspaces/default/chats', '/sessions?limit=200'));
      expect(await sessions.text()).toContain(chat.sessionId);
    }
  });

  // @shows U46
  it('takes a body of the content alone for a message', async () => {
    const chat = await create('content alone');
    const stream = await attach(chat);
    const reply = await request<Reply>('POST', `/${chat.id}`, { content: 'only this' });
    await stream.done();
    expect(reply.turnId).not.toBeNull();
    expect(await read(chat)).toContain('only this');
  });

  // @shows chats-C3
  it('resumes exactly after every event, on another gateway', async () => {
    const chat = await create('resumed');
    const first = await attach(chat);
    await say(chat, 'one two three');
    await first.done();
    const all = idsAndData(first.events);
    for (const [index, { id }] of all.entries()) {
      if (index === all.length - 1) break;
      const again = await attach(chat, id, 1);
      await again.done();
      expect(idsAndData(again.events)).toEqual(all.slice(index + 1));
      again.close();
    }
  });

  // @shows chats-C3
  it('answers absent, malformed, foreign, future and unknown places in ways of their own', async () => {
    const [chat, other] = [await create('places'), await create('other places')];
    const foreign = (await (await attach(other)).waitFor('ready', () => true)).id ?? '';
    const ready = await (await attach(chat)).waitFor('ready', () => true);
    expect(ready.data).toMatchObject({ cursor: 'absent' });
    const own = ready.id ?? '';
    expect((await (await attach(chat, own)).waitFor('ready', () => true)).data).toMatchObject({
      cursor: 'resumed',
    });
    const refused = (id: string) => attach(chat, id).then(String, String);
    expect(await refused('nonsense')).toMatch(/400 .*CHAT.CURSOR_MALFORMED/);
    expect(await refused(foreign)).toMatch(/409 .*CHAT.CURSOR_FOREIGN/);
    expect(await refused(own.replace(/\d+$/, '99999999999'))).toMatch(/409 .*GATEWAY.OFFSET_AHEAD/);
    expect(await refused(own.replace(/^\d+/, '7'))).toMatch(/409 .*GATEWAY.EPOCH_CHANGED/);
    const unknown = { ...chat, id: randomUUID() };
    expect(await attach(unknown).then(String, String)).toMatch(/404 .*CHAT.NOT_FOUND/);
  });

  // @shows chats-C2 U46
  it('joins a repeated message and a repeated creation, and refuses a name that is taken', async () => {
    const key = randomUUID();
    const [chat, again] = [
      await request<Chat>('POST', '', { name: 'once' }, key),
      await request<Chat>('POST', '', { name: 'once' }, key),
    ];
    expect(again).toEqual(chat);
    await expect(create('ONCE')).rejects.toThrow(/409 .*CHAT.NAME_TAKEN/);
    const sent = [await say(chat, 'hello', 'k1'), await say(chat, 'hello', 'k1')];
    expect(sent.map(({ joined }) => joined)).toEqual([false, true]);
    expect(sent[0]?.turnId).toBe(sent[1]?.turnId);
    const stream = await attach(chat, sent[1]?.cursor);
    await stream.done();
    expect(stream.events.filter(({ event }) => event === 'accepted')).toHaveLength(1);
  });

  // @shows P2 U46
  it('changes what a reader and the next turn see when a message is edited or deleted', async () => {
    const chat = await create('changed');
    const stream = await attach(chat);
    const { turnId } = await say(chat, 'a secret word');
    await stream.done();
    await request('PATCH', `/${chat.id}/messages/${turnId}`, { content: 'a plain word' });
    await request('DELETE', `/${chat.id}/messages/${turnId}-answer`);
    const text = await read(chat);
    expect(text).toContain('a plain word');
    expect(text).not.toContain('secret');
    await expect(request('DELETE', `/${chat.id}/messages/${randomUUID()}`)).rejects.toThrow(
      /404 .*CHAT.MESSAGE_NOT_FOUND/,
    );
  });

  it('moves its file when it is renamed, and refuses commands once it is deleted, on each gateway', async () => {
    const chat = await create('drafts');
    expect(await read(chat)).toMatch(/^# drafts\n/);
    await request('PATCH', '/drafts', { name: 'finals' });
    const other = await fetch(urlOf('/finals', 1));
    expect([other.headers.get('etag'), await other.text()]).toEqual([
      expect.stringMatching(/\.2"$/),
      expect.stringMatching(/^# finals\n/),
    ]);
    const deleted = await request('DELETE', `/${chat.id}`);
    expect(await request('DELETE', `/${chat.id}`)).toEqual(deleted);
    for (const gateway of [0, 1]) expect((await fetch(urlOf(`/${chat.id}`, gateway))).status).toBe(404);
    await expect(say(chat, 'hello?')).rejects.toThrow(/404 .*CHAT.DELETED/);
    expect(await attach(chat).then(String, String)).toMatch(/404 .*CHAT.DELETED/);
    expect((await create('finals')).id).not.toBe(chat.id);
  });
});
