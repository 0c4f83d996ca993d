import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ChatView } from '@antiphon/contracts/agent';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import type { AccessWorld } from './access-world.js';
import { ChatStream } from './chat-stream.js';
import { waitForValue } from './stack-under-test.js';

/** Attempts of a viewer to read a message and an answer that a person deleted. */
export const describeDeletedTexts = (world: () => AccessWorld): void => {
  const secret = `deleted-${randomUUID()}`;
  const workspace = '/api/v1/workspaces/acme';
  const clients: SocketClient[] = [];
  let chat: ChatView;
  /** Versions of the chat and of the file tree, and a position and a cursor, before the deletion. */
  let before: { chat: number; tree: number; position: number; cursor: string };
  let turnId = '';

  const tokenOf = (label: string): string => world().holder(`acme ${label}`).token ?? '';
  const read = (path: string, label = 'viewer') => world().request('get', path, tokenOf(label));
  const json = async <T>(path: string): Promise<T> => JSON.parse((await read(path)).text) as T;
  const send = (method: string, path: string, body?: object, label = 'operator') =>
    world().request(method, path, tokenOf(label), body);
  const chatPath = (): string => `${workspace}/chats/${chat.id}`;
  const subscribe = async (label: string, from: string): Promise<SocketClient> => {
    const client = await connectClient(world().stack.wsUrl, { authorization: `Bearer ${tokenOf(label)}` });
    clients.push(client);
    await client
      .stream('events.subscribe', { from })
      .waitFor('the end of the past', ({ event }) => event === 'live');
    return client;
  };
  const putFile = async (): Promise<number> => {
    const { text } = await send('put', `${workspace}/files/step-${randomUUID()}.md`, { text: 'x' });
    return (JSON.parse(text) as { version: number }).version;
  };
  const openApproval = () =>
    waitForValue('the approval', async () => {
      const query = `/api/v1/approvals?status=pending&session=${chat.sessionId}`;
      return (await json<{ approvals: { id: string }[] }>(query)).approvals[0];
    });
  const position = async (): Promise<number> => (await json<{ head: number }>('/api/v1/events?limit=1')).head;

  beforeAll(async () => {
    const name = `gone-${randomUUID()}`;
    const made = await send('post', `${workspace}/chats`, { name, agent: 'claude' });
    chat = JSON.parse(made.text) as ChatView;
    const first = await subscribe('operator', 'start');
    const { cursor = '' } = first.received.findLast(({ event }) => event === 'live') as { cursor?: string };
    await send('post', chatPath(), { command: 'message', content: `approve ${secret}` });
    const { id: approvalId } = await openApproval();
    await send('post', chatPath(), { command: 'approve', approvalId, reason: secret });
    const document = await waitForValue('the answer', async () => {
      const { text } = await read(`${chatPath()}?format=json`);
      return text.includes('"completed"') ? (JSON.parse(text) as { version: number }) : undefined;
    });
    const asked = await json<{ events: { data: { turnId: string } }[] }>(
      `/api/v1/events?type=TurnRequested&session=${chat.sessionId}`,
    );
    turnId = asked.events[0]?.data.turnId ?? '';
    before = { chat: document.version, tree: await putFile(), position: await position(), cursor };
    expect((await read(`${workspace}/files/${chat.path}?at=${before.tree}`)).text).toContain(secret);
    const { messages } = await json<{ messages: { id: string }[] }>(`${chatPath()}?format=json`);
    for (const { id } of messages)
      expect([id, (await send('delete', `${chatPath()}/messages/${id}`)).status]).toEqual([id, 200]);
    await putFile();
  }, 60_000);
  afterAll(() => Promise.all(clients.map((client) => client.close())));

  describe('a deleted message and a deleted answer', () => {
    const paths = (): string[] => [
      ...[chatPath(), `${chatPath()}?format=json`, `${workspace}/chats`],
      ...Array.from({ length: before.chat }, (_, i) => `${chatPath()}?format=json&at=${i + 1}`),
      `${chatPath()}?at=${before.chat}`,
      `${workspace}/files/${chat.path}`,
      `${workspace}/files/${chat.path}?at=${before.tree}`,
      `${workspace}/files?at=${before.tree}`,
      `/api/v1/events?limit=1000&session=${chat.sessionId}`,
      `/api/v1/events?limit=1000&order=desc&at=${before.position}`,
      `/api/v1/sessions`,
      `/api/v1/sessions?at=${before.position}`,
      ...['', `?at=${before.position}`].flatMap((at) => [
        `/api/v1/sessions/${chat.sessionId}${at}`,
        `/api/v1/sessions/${chat.sessionId}/turns${at}`,
        `/api/v1/sessions/${chat.sessionId}/export${at}`,
        `/api/v1/approvals${at}`,
      ]),
      `/api/v1/sessions/${chat.sessionId}/export?format=json`,
      `/api/v1/sessions/${chat.sessionId}/history`,
      `/api/v1/sessions/${chat.sessionId}/history?from=${before.position}`,
      `/api/v1/sessions/${chat.sessionId}/history?to=${before.position}`,
      `/api/v1/turns/${turnId}`,
      `/api/v1/sessions/${chat.sessionId}/turns/${turnId}/context`,
    ];

    it('are in no read of a viewer, at any version or position', async () => {
      for (const path of paths()) {
        const { status, text } = await read(path);
        expect([path, [200, 404].includes(status), text.includes(secret)]).toEqual([path, true, false]);
      }
    });

    it('are not found by a search of their texts', async () => {
      for (const query of ['', '&order=desc', `&session=${chat.sessionId}`, '&limit=1']) {
        const found = await json<{ events: unknown[]; nextCursor: unknown }>(
          `/api/v1/events?text=${secret}${query}`,
        );
        expect([query, found.events]).toEqual([query, []]);
      }
    });

    it('are in no frame that a viewer resumes, and the offsets stay', async () => {
      const client = await connectClient(world().stack.wsUrl, {
        authorization: `Bearer ${tokenOf('viewer')}`,
      });
      clients.push(client);
      const { sessionId } = chat;
      await client
        .stream('session.resume', { sessionId, after: 0 })
        .waitFor('the end', ({ event }) => event === 'done');
      expect(JSON.stringify(client.received)).not.toContain(secret);
      const kinds = client.received.map(({ event }) => event);
      for (const kind of ['accepted', 'tool_use', 'approval', 'tool_result', 'text', 'done'])
        expect(kinds).toContain(kind);
      const url = `${world().stack.gatewayUrl}${chatPath()}/events`;
      const stream = await ChatStream.open(url, { token: tokenOf('viewer') });
      await stream.waitFor('the end', ({ event }) => event === 'done');
      stream.close();
      expect(JSON.stringify(stream.events)).not.toContain(secret);
    });

    it('are in no event of a subscription, from the log or from the buffer of the gateway', async () => {
      for (const from of ['start', before.cursor]) {
        const client = await subscribe('viewer', from);
        expect(JSON.stringify(client.received)).toContain('ChatMessageDeleted');
        expect([from, JSON.stringify(client.received).includes(secret)]).toEqual([from, false]);
      }
    });

    it('stay in the log, and an export with them needs operations:write', async () => {
      const path = `/api/v1/sessions/${chat.sessionId}/export?deleted=include`;
      expect(await read(path)).toMatchObject({ status: 403, code: 'GATEWAY.FORBIDDEN' });
      expect(await read(path, 'member')).toMatchObject({ status: 403 });
      expect((await read(path, 'operator')).text).toContain(secret);
    });
  });
};
