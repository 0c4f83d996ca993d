import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ChatView } from '@antiphon/contracts/agent';
import type { Permission } from '@antiphon/contracts/identity';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import type { AccessWorld } from './access-world.js';
import { waitForValue } from './stack-under-test.js';

interface Page {
  readonly events: readonly {
    readonly category: string;
    readonly type: string;
    readonly data: Readonly<Record<string, unknown>>;
    readonly withheld?: string;
  }[];
}

/** Attempts to read content by an interface whose own right is another one, in `acme`. */
export const describeContentRights = (world: () => AccessWorld): void => {
  const secret = `secret-${randomUUID()}`;
  const files = '/api/v1/workspaces/acme/files';
  const clients: SocketClient[] = [];
  let chat: ChatView;

  const get = (path: string, token: string) => world().request('get', path, token);
  const admin = (): string => world().holder('acme admin').token ?? '';
  const keyWith = async (...scopes: Permission[]): Promise<string> => {
    const made = await world().request('post', '/api/v1/keys', admin(), {
      name: scopes.join(' '),
      role: 'admin',
      scopes,
    });
    return (JSON.parse(made.text) as { token: string }).token;
  };
  const connect = async (token: string): Promise<SocketClient> => {
    const client = await connectClient(world().stack.wsUrl, { authorization: `Bearer ${token}` });
    clients.push(client);
    return client;
  };
  const typesOf = (client: SocketClient): Set<string | undefined> =>
    new Set(client.received.map(({ type }) => type));
  const eventsOf = async (token: string, query = 'limit=1000'): Promise<Page['events']> =>
    (JSON.parse((await get(`/api/v1/events?${query}`, token)).text) as Page).events;

  beforeAll(async () => {
    const made = await world().request('post', '/api/v1/workspaces/acme/chats', admin(), {
      name: `talk-${randomUUID()}`,
      agent: 'gpt',
    });
    chat = JSON.parse(made.text) as ChatView;
    const path = `/api/v1/workspaces/acme/chats/${chat.id}`;
    await world().request('post', path, admin(), { command: 'message', content: `I like ${secret}` });
    await waitForValue('the answer', async () =>
      (await get(`${path}?format=json`, admin())).text.includes('"completed"') ? true : undefined,
    );
  });
  afterAll(() => Promise.all(clients.map((client) => client.close())));

  describe('a key with agents:read alone', () => {
    it('gets the frames of states, and none of memory, plans or approvals', async () => {
      const [limited, whole] = [await connect(await keyWith('agents:read')), await connect(admin())];
      await limited.call('agent.subscribe');
      await whole.call('agent.subscribe');
      for (const kind of ['memory', 'plan', 'blocked']) {
        limited.sendRaw(JSON.stringify({ id: kind, method: 'agent.subscribe', params: { frames: [kind] } }));
        const { error } = await limited.waitFor(`the refusal of ${kind}`, ({ id }) => id === kind);
        expect([kind, error?.code]).toEqual([kind, -32003]);
      }
      const send = async (content: string) => {
        const address = { channel: 'web', account: 'main', agent: 'gpt' };
        const turn = whole.stream('chat.send', { ...address, peer: randomUUID(), content });
        await turn.waitFor('the end', ({ event }) => event === 'done');
      };
      await send('My name is Ada.');
      await whole.waitFor('a frame of memory', ({ type }) => type === 'memory.event');
      const before = limited.received.length;
      await send('hello');
      await waitForValue('frames of the next turn', () =>
        Promise.resolve(limited.received.length > before ? true : undefined),
      );
      expect(typesOf(limited)).toContain('agent.progress');
      for (const type of ['memory.event', 'agent.plan', 'agent.blocked'])
        expect([type, typesOf(limited).has(type)]).toEqual([type, false]);
    });
  });

  describe('a key with files:read alone', () => {
    it('neither lists, reads nor finds a chat among the files', async () => {
      const [limited, both] = [await keyWith('files:read'), await keyWith('files:read', 'sessions:read')];
      for (const query of ['', '?recursive=true', '?at=0', '?limit=1', '?bin=true']) {
        const { status, text } = await get(files + query, limited);
        expect([query, status, text.includes('.chat')]).toEqual([query, 200, false]);
      }
      for (const path of [chat.path, chat.path.toUpperCase(), 'no-such.chat']) {
        const { status, text } = await get(`${files}/${path}`, limited);
        expect([path, status, text.includes(secret)]).toEqual([path, 403, false]);
      }
      expect((await get(`${files}/${chat.path}?at=0`, limited)).status).toBe(403);
      expect((await get(files, both)).text).toContain(chat.path);
      expect((await get(`${files}/${chat.path}`, both)).text).toContain(secret);
    });
  });

  describe('a key with events:read alone', () => {
    it('sees that events happened, and no data of a category whose right it lacks', async () => {
      const limited = await keyWith('events:read');
      const events = await eventsOf(limited);
      expect(events.length).toBeGreaterThan(10);
      for (const { category, data, withheld } of events)
        if (category !== 'workspace') expect([data, withheld]).toEqual([{}, expect.any(String)]);
      expect(await eventsOf(limited, `text=${secret}`)).toEqual([]);
      expect(await eventsOf(await keyWith('events:read', 'sessions:read'), `text=${secret}`)).not.toEqual([]);
    });

    it('gets the same events by a subscription, of the past and live', async () => {
      const client = await connect(await keyWith('events:read'));
      const stream = client.stream('events.subscribe', { from: 'start' });
      await stream.waitFor('the end of the past', ({ event }) => event === 'live');
      const path = `/api/v1/workspaces/acme/chats/${chat.id}`;
      const live = `live-${secret}`;
      const isOwn = (data: unknown): boolean =>
        (data as { type?: string } | undefined)?.type === 'TurnRequested';
      // The event may come before the response to the request.
      const seen = client.received.length;
      await world().request('post', path, admin(), { command: 'message', content: live });
      await waitForValue('the live event', () =>
        Promise.resolve(client.received.slice(seen).some(({ data }) => isOwn(data)) || undefined),
      );
      expect(JSON.stringify(client.received)).not.toContain(secret);
      expect(client.received.some(({ data }) => isOwn(data))).toBe(true);
    });
  });

  describe('a key with sessions:write alone', () => {
    it('attaches no file, which the agent would read to it', async () => {
      await world().request('put', `${files}/private.md`, admin(), { text: secret });
      const limited = await keyWith('sessions:read', 'sessions:write');
      const command = { command: 'attach', path: 'private.md' };
      const answer = await world().request(
        'post',
        `/api/v1/workspaces/acme/chats/${chat.id}`,
        limited,
        command,
      );
      expect([answer.status, answer.code]).toEqual([403, 'GATEWAY.FORBIDDEN']);
    });
  });
};
