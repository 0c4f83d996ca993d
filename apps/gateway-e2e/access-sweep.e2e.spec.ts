import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { isPermitted, type Access, type Principal } from '@antiphon/contracts/identity';
import { HTTP_ROUTES, SOCKET_METHODS, type HttpRoute } from '@antiphon/contracts/reference';
import { connectClient, type Incoming, type SocketClient } from '@antiphon/testing/client';
import { ChatStream } from './chat-stream.js';
import { CANARY, createAccessWorld, type AccessWorld, type Holder } from './access-world.js';
import { describeContentRights } from './describe-content-rights.js';
import { describeDeletedTexts } from './describe-deleted-texts.js';
import { describeRefusedWrites } from './describe-refused-writes.js';

jest.setTimeout(120_000);

let world: AccessWorld;
beforeAll(async () => {
  world = await createAccessWorld();
});
afterAll(() => world?.close());

const satisfies = ({ principal }: Holder, access: Access): boolean =>
  access === 'open' ||
  (principal !== null && (access === 'authenticated' || isPermitted(principal as Principal, access)));
const isForeign = ({ principal }: Holder): boolean => principal?.workspace === 'globex';

/** Returns the path of a route with the ids of `acme`'s resources. */
const pathOf = ({ path, example: { params = {} } }: HttpRoute): string => {
  const kind = /^\/api\/v1\/(\w+)/.exec(path)?.[1] ?? '';
  const id = kind === 'workspaces' ? 'acme' : world.resources[kind as keyof AccessWorld['resources']];
  const named = path.replace('{id}', id).replace('{topic}', 'news');
  return named.replaceAll(/\{(\w+)\}/g, (_, name: string) => params[name] ?? name);
};
/** Returns true for a route of one resource, which another workspace must not find. */
const namesResource = ({ path }: HttpRoute): boolean => path.includes('{id}');

/** Returns a body that the route accepts, so that no answer is about the body. */
const bodyOf = ({ path, example }: HttpRoute): unknown => {
  if (example.body === undefined) return undefined;
  if (path === '/api/v1/workspaces') return { id: `w-${randomUUID()}` };
  const definition = { name: 'sweep', nodes: [{ id: 'one', agent: 'gpt', prompt: 'hello' }] };
  if (path === '/api/v1/runs') return { workflow: definition };
  return /workflows(\/{id})?$/.test(path) ? definition : example.body;
};

/** Returns what a route demands in its query, with more of it: no answer is about the query. */
const queryOf = ({ query, example }: HttpRoute, more: Record<string, string>): string => {
  const demanded = Object.entries(example.query ?? {}).filter(
    ([name]) => query?.shape[name]?.safeParse(undefined).success === false,
  );
  const given = Object.fromEntries(demanded.map(([name, value]) => [name, String(value)]));
  return `?${String(new URLSearchParams({ ...given, ...more }))}`;
};

const send = (route: HttpRoute, { token }: Holder, query: Record<string, string> = {}) =>
  world.request(route.method, pathOf(route) + queryOf(route, query), token, bodyOf(route));

/** Returns the newest event of `acme`: a log only grows. */
const logOfAcme = async (): Promise<string> => {
  const { token } = world.holder('acme admin');
  const { text, status } = await world.request('get', '/api/v1/events?order=desc&limit=1', token);
  expect(status).toBe(200);
  // The head of the log moves with events of other workspaces.
  return JSON.stringify((JSON.parse(text) as { events: unknown }).events);
};

/** Params with which a method names the resources of `acme`. */
const paramsOf = (name: string, params: unknown): unknown => {
  const { sessions: sessionId, approvals: approvalId, agents: agentId, tasks: taskId } = world.resources;
  const given = params as Record<string, unknown>;
  return {
    ...given,
    ...('sessionId' in given ? { sessionId } : {}),
    ...('approvalId' in given ? { approvalId } : {}),
    ...('agentId' in given ? { agentId } : {}),
    ...('taskId' in given ? { taskId } : {}),
    ...(name === 'message.send' ? { to: { agent: agentId } } : {}),
    ...(name === 'session.resume' ? { after: 0 } : {}),
  };
};
const namesOwned = (params: unknown): boolean =>
  ['sessionId', 'approvalId', 'agentId', 'taskId', 'to'].some((field) => field in (params as object));

const connectAs = ({ token }: Holder): Promise<SocketClient> =>
  connectClient(world.stack.wsUrl, token === null ? {} : { authorization: `Bearer ${token}` });

let lastId = 0;
/** Sends a request. Returns its first message: a result, an error or a frame. */
const ask = (client: SocketClient, method: string, params: unknown): Promise<Incoming> => {
  const id = `sweep-${++lastId}`;
  client.sendRaw(JSON.stringify({ id, method, params }));
  return client.waitFor(`the answer to ${method}`, (message) => message.id === id);
};

/** Expects that a request is refused, or that its answer shows nothing of `acme`. */
const expectRefusal = async (
  route: HttpRoute,
  holder: Holder,
  query: Record<string, string> = {},
): Promise<void> => {
  const { status, code, text } = await send(route, holder, query);
  const { label } = holder;
  if (!holder.principal && route.access !== 'open')
    // A wrong key is limited after ten attempts.
    expect([label, code]).toEqual([label, expect.stringMatching(/UNAUTHENTICATED|TOO_MANY_FAILURES/)]);
  else if (!satisfies(holder, route.access)) {
    expect([label, status, code]).toEqual([label, 403, 'GATEWAY.FORBIDDEN']);
    expect(text).toContain(route.access);
  } else if (namesResource(route)) {
    // Some changes are refused to the key of any agent, before the resource is looked up.
    const isAgentRefused = typeof holder.principal?.agentId === 'string' && code === 'AGENT.NOT_ALLOWED';
    expect([label, status]).toEqual([label, isAgentRefused ? 403 : 404]);
  }
  expect([label, text.includes(CANARY)]).toEqual([label, false]);
  const ids = Object.values(world.resources);
  if (isForeign(holder) && !namesResource(route))
    expect([label, ids.filter((id) => text.includes(id))]).toEqual([label, []]);
};

const ENTRIES = HTTP_ROUTES.map((route) => [`${route.method} ${route.path}`, route] as const);

describe('every route, for every credential that does not satisfy its rule or is of another workspace', () => {
  it.each(ENTRIES)('%s refuses it, shows nothing and writes nothing', async (_, route) => {
    const before = await logOfAcme();
    const refused = world.holders.filter((holder) => !satisfies(holder, route.access) || isForeign(holder));
    await Promise.all(refused.map((holder) => expectRefusal(route, holder)));
    expect(await logOfAcme()).toBe(before);
  });
});

const READS = ENTRIES.filter(([, { method }]) => method === 'get');

describe('every read, by a viewer', () => {
  it.each(READS)('%s writes nothing', async (_, route) => {
    await world.request(
      'put',
      '/api/v1/workspaces/acme/files/release.plan.md',
      world.holder('acme admin').token,
      {
        text: `- [ ] a step ${randomUUID()}\n`,
      },
    );
    const before = await logOfAcme();
    for (const label of ['acme viewer', 'acme agent']) await send(route, world.holder(label));
    expect(await logOfAcme()).toBe(before);
  });
});

/** Reads whose `at` is a position of the log. Files and chats have versions of their own. */
const PAST = ENTRIES.filter(
  ([, { method, path, query }]) =>
    method === 'get' && query?.shape['at'] !== undefined && !path.includes('/workspaces/'),
);

describe('every read of the past, for every credential that does not satisfy its rule or is of another workspace', () => {
  it.each(PAST)('%s refuses it with a position, and shows nothing', async (_, route) => {
    const page = await world.request('get', '/api/v1/events?limit=1', world.holder('acme admin').token);
    const { head } = JSON.parse(page.text) as { head: number };
    const refused = world.holders.filter((holder) => !satisfies(holder, route.access) || isForeign(holder));
    await Promise.all(refused.map((holder) => expectRefusal(route, holder, { at: String(head) })));
  });
});

describe('every socket method, for every credential that does not satisfy its rule or is of another workspace', () => {
  const clients = new Map<string, SocketClient>();
  beforeAll(async () => {
    for (const holder of world.holders)
      if (holder.principal) clients.set(holder.label, await connectAs(holder));
  });
  afterAll(() => Promise.all([...clients.values()].map((client) => client.close())));

  it.each(SOCKET_METHODS.map((method) => [method.name, method] as const))(
    '%s refuses it, shows nothing and writes nothing',
    async (name, { access, example }) => {
      const before = await logOfAcme();
      const params = paramsOf(name, example.params);
      const expectRefusalOf = async (holder: Holder): Promise<void> => {
        const client = clients.get(holder.label);
        const isAllowed = satisfies(holder, access);
        if (!client || (isAllowed && !isForeign(holder))) return;
        const answer = await ask(client, name, params);
        const seen = [holder.label, answer.error?.code];
        if (!isAllowed) {
          expect(seen).toEqual([holder.label, -32003]);
          expect(answer.error?.data).toMatchObject({ code: 'GATEWAY.FORBIDDEN', permission: access });
        } else if (namesOwned(params)) expect(seen).toEqual([holder.label, -32004]);
      };
      await Promise.all(world.holders.map(expectRefusalOf));
      expect(await logOfAcme()).toBe(before);
      for (const [label, client] of clients)
        if (label.startsWith('globex'))
          expect([label, JSON.stringify(client.received).includes(CANARY)]).toEqual([label, false]);
    },
  );

  it.each(SOCKET_METHODS.map(({ name, example }) => [name, example.params] as const))(
    '%s closes a connection without a key',
    async (name, params) => {
      const client = await connectAs(world.holder('no key'));
      client.sendRaw(JSON.stringify({ id: 1, method: name, params: paramsOf(name, params) }));
      expect(await client.closed).toBe(4401);
    },
  );

  it('refuses the upgrade of a wrong key', () =>
    expect(connectAs(world.holder('a wrong key'))).rejects.toThrow(/401|429/));
});

describe('an API key', () => {
  const post = (label: string, path: string, body: object, headers = {}) =>
    world.request('post', path, world.holder(label).token, body, headers);

  it('joins a command of the socket and the same command over HTTP under one idempotency key', async () => {
    const key = randomUUID();
    const sessionId = world.resources.sessions;
    const client = await connectAs(world.holder('acme member'));
    const fork = (await client.call('session.fork', { sessionId, idempotencyKey: key })) as {
      sessionId: string;
    };
    const again = await post(
      'acme member',
      `/api/v1/sessions/${sessionId}/fork`,
      {},
      { 'idempotency-key': key },
    );
    expect([again.status, JSON.parse(again.text)]).toEqual([201, fork]);
    const other = await post(
      'acme operator',
      `/api/v1/sessions/${sessionId}/fork`,
      {},
      { 'idempotency-key': key },
    );
    expect(other.status).toBe(201);
    expect((JSON.parse(other.text) as typeof fork).sessionId).not.toBe(fork.sessionId);
    await client.close();
  });

  it('is named in the fact of its answer, if its role is high enough and it is no agent’s', async () => {
    const path = `/api/v1/approvals/${world.resources.approvals}/answer`;
    const body = { decision: 'approve' };
    expect(await post('acme agent', path, body)).toMatchObject({ status: 403, code: 'GATEWAY.FORBIDDEN' });
    expect(await post('acme member', path, body)).toMatchObject({
      status: 403,
      code: 'APPROVAL.ROLE_TOO_LOW',
    });
    expect((await post('acme operator', path, body)).status).toBe(200);
    const granted = await world.request(
      'get',
      '/api/v1/events?type=ApprovalGranted',
      world.holder('acme viewer').token,
    );
    const { events } = JSON.parse(granted.text) as { events: { data: Record<string, unknown> }[] };
    expect(events[0]?.data).toMatchObject({
      answeredBy: expect.stringMatching(/^key\/[a-z2-7]{16}$/),
      answeredByName: `${CANARY} operator`,
      role: 'operator',
    });
  });

  it('closes its sockets with 4403, and ends its streams of chats, within a second after its revocation', async () => {
    const admin = 'acme admin';
    const made = await post(admin, '/api/v1/keys', { name: 'short', role: 'member' });
    const { id, token } = JSON.parse(made.text) as { id: string; token: string };
    const authorization = `Bearer ${token}`;
    const [header, frame] = await Promise.all([
      connectClient(world.stack.wsUrl, { authorization }),
      connectClient(world.stack.wsUrl),
    ]);
    frame.sendRaw(JSON.stringify({ id: 1, method: 'connect', params: { token } }));
    await frame.waitFor('the ack', ({ type }) => type === 'session.ack');
    const other = await connectAs(world.holder(admin));
    const chat = await post(admin, '/api/v1/workspaces/acme/chats', { name: 'watched', agent: 'gpt' });
    const { id: chatId } = JSON.parse(chat.text) as { id: string };
    const url = `${world.stack.gatewayUrl}/api/v1/workspaces/acme/chats/${chatId}/events`;
    const [stream, kept] = await Promise.all(
      [token, world.holder(admin).token ?? ''].map((one) => ChatStream.open(url, { token: one })),
    );
    await stream?.waitFor('ready', ({ event }) => event === 'ready');
    expect((await world.request('delete', `/api/v1/keys/${id}`, world.holder(admin).token)).status).toBe(200);
    const revokedAt = performance.now();
    expect(await Promise.all([header.closed, frame.closed])).toEqual([4403, 4403]);
    await stream?.waitForEnd();
    expect(performance.now() - revokedAt).toBeLessThan(1_000);
    expect([401, 429]).toContain((await world.request('get', '/api/v1/agents', token)).status);
    expect(await other.call('ping')).toBe('pong');
    expect(kept?.isEnded).toBe(false);
    kept?.close();
    await other.close();
  });
});

describe('every route and method, for every credential that satisfies its rule', () => {
  it.each(ENTRIES)('%s does not refuse it', async (_, route) => {
    const expectAnswer = async (holder: Holder): Promise<void> => {
      const { status, text } = await send(route, holder);
      const isRefused = status === 401 || status === 500 || text.includes('lacks the permission');
      expect([holder.label, status, isRefused]).toEqual([holder.label, status, false]);
    };
    const allowed = world.holders.filter((holder) => satisfies(holder, route.access) && !isForeign(holder));
    // Changes are made one after another, as each may end what the next one needs.
    if (route.method === 'get') await Promise.all(allowed.map(expectAnswer));
    else for (const holder of allowed) await expectAnswer(holder);
  });

  it.each(SOCKET_METHODS.map((method) => [method.name, method] as const))(
    '%s does not refuse it',
    async (name, { access, example }) => {
      for (const holder of world.holders) {
        if (!holder.principal || !satisfies(holder, access) || isForeign(holder)) continue;
        const client = await connectAs(holder);
        const { error } = await ask(client, name, paramsOf(name, example.params));
        expect([holder.label, [-32001, -32603].includes(error?.code ?? 0)]).toEqual([holder.label, false]);
        expect(error?.data?.['code']).not.toBe('GATEWAY.FORBIDDEN');
        await client.close();
      }
    },
  );
});

describeContentRights(() => world);
describeDeletedTexts(() => world);
describeRefusedWrites(() => world);
