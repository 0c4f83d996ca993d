import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import {
  changeAgent,
  connectProvider,
  listProviderModels,
  listSecrets,
  readSecret,
  removeProvider,
  removeSecret,
  setSecret,
  spawnAgent,
  testProvider,
} from '@antiphon/contracts/agent';
import type { AgentActor, AgentChanges, ProviderTest } from '@antiphon/contracts/agent';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
  until,
  WORKSPACE,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { override } from '@antiphon/agent-features/testing/compose-modules';
import { ChangeAgent } from '@antiphon/agents-features/lifecycle/change-agent.handler';
import { inWorkspace } from '@antiphon/database';
import { isAppError } from '@antiphon/kernel';
import type { ModelPort } from '@antiphon/providers-domain';
import { ENVIRONMENT } from '@antiphon/service-host';
import type { QueryResultRow } from 'pg';
import { createTestDatabase } from '@antiphon/testing';
import { openAiStream, startHttpProvider } from '@antiphon/testing/providers';
import type { HttpProvider, SeenRequest } from '@antiphon/testing/providers';
import { SecretsHandler } from '../credentials/secrets.handler.js';
import { MODELS } from '../providers.tokens.js';
import { ChangeProviders } from './change-providers.handler.js';
import { Credentials } from './credentials.handler.js';
import { ReadProviders } from './read-providers.handler.js';

jest.setTimeout(60_000);

const KEY = 'sk-canary-connected-4c1be0f7a6d24f0f';
const OTHER_KEY = 'sk-canary-replaced-90d1be0f7a6d24f0';
const OPERATOR: AgentActor = { caller: 'key/k1', role: 'operator', agentId: null };
const masterKey = randomBytes(32).toString('base64url');

let server: HttpProvider;
let world: AgentWorld;
let first: TestProcess;
let second: TestProcess;
let accepted = KEY;
let count = 0;

const sendJson = (response: ServerResponse, status: number, body: unknown): void => {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
};

const MODELS_OF_SERVER = { data: [{ id: 'm-large', context_length: 200_000 }, { id: 'm-small' }, { id: 7 }] };

/** A server in OpenAI's format. The first part of its path says how it behaves. */
const serve = ({ path, headers, method }: SeenRequest, response: ServerResponse): void => {
  const { authorization = '' } = headers;
  const status = Number(/^\/(\d{3})\//.exec(path)?.[1] ?? 0);
  if (status !== 0) return sendJson(response, status, { error: { message: `refused ${authorization}` } });
  if (path.startsWith('/html/')) return void response.end('<html>hello</html>');
  if (authorization !== `Bearer ${accepted}`)
    return sendJson(response, 401, { error: { message: `Incorrect API key: ${authorization}` } });
  if (method === 'GET') return sendJson(response, 200, MODELS_OF_SERVER);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.end(openAiStream('m-large', { text: ['hello'] }).join(''));
};

/** Makes a process call its own providers instead of the scripted model of the world. */
const startProcess = (): TestProcess => {
  let started: TestProcess | null = null;
  const models = new Proxy({} as ModelPort, {
    get: (_target, name: keyof ModelPort) => (started?.get(MODELS) as ModelPort)[name],
  });
  const config = {
    ...testConfig(),
    providers: [{ name: 'first', kind: 'scripted', baseUrl: null }],
  } as never;
  const overrides = [override(ENVIRONMENT, { ANTIPHON_MASTER_KEY: masterKey, OPENAI_API_KEY: 'sk-of-env' })];
  started = world.process({ config, models, overrides });
  return started;
};

beforeAll(async () => {
  server = await startHttpProvider(serve);
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  first = startProcess();
  second = startProcess();
  await Promise.all([first.started, second.started]);
});
afterAll(async () => {
  await world.close();
  await server.close();
});
let seenBefore = 0;
beforeEach(() => {
  accepted = KEY;
  seenBefore = server.requests.length;
});
/** Returns the requests of the current test. */
const requests = (): readonly SeenRequest[] => server.requests.slice(seenBefore);

type Spec = Partial<Parameters<ChangeProviders['connect']>[0]>;
const connect = (name: string, spec: Spec = {}, process = first) =>
  process.get(ChangeProviders).connect(
    connectProvider.request.parse({
      ...{ workspace: WORKSPACE, name, caller: 'key/k1', kind: 'openai', secret: KEY },
      baseUrl: `${server.url}/v1`,
      ...spec,
    }),
  );
const remove = (name: string, process = first) =>
  process
    .get(ChangeProviders)
    .remove(removeProvider.request.parse({ workspace: WORKSPACE, name, caller: 'key/k1' }));
const test = (spec: object): Promise<ProviderTest> =>
  first.get(ReadProviders).test(
    testProvider.request.parse({
      ...{ workspace: WORKSPACE, kind: 'openai', secret: KEY, baseUrl: `${server.url}/v1` },
      ...spec,
    }),
  );
const change = (agentId: string, changes: Partial<AgentChanges>, actor = OPERATOR, process = first) =>
  process
    .get(ChangeAgent)
    .handle(changeAgent.request.parse({ workspace: WORKSPACE, agentId, changes, actor }))
    .then(({ agent }) => agent);
const newName = (): string => `p${++count}`;
const newAgent = async (provider: string, process = second) => {
  const spec = { name: 'Ann', provider, model: 'm-large' };
  const request = spawnAgent.request.parse({ workspace: WORKSPACE, spec, actor: OPERATOR });
  return (await process.runtime.spawnAgent(request)).agent.id;
};
const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'none',
    (error: unknown) => (isAppError(error) ? error.code : String(error)),
  );
const query = <Row extends QueryResultRow>(text: string, values: unknown[] = []) =>
  inWorkspace(world.pool, WORKSPACE).query<Row>(text, values);
const answerOf = async (process: TestProcess, agentId: string): Promise<unknown> => {
  const { sessionId } = await submitTo(process, { address: newAddress(agentId) });
  const events = await world.ended(sessionId);
  const answer = events.findLast(({ type }) => type === 'ModelCallCompleted');
  return answer?.data['text'] ?? [events.at(-1)?.type];
};
const eventsAbout = async (name: string) => {
  const { rows } = await query<{ type: string; data: Record<string, unknown> }>(
    `select type, data from events where category = 'provider' and data ->> 'name' = $1 order by position`,
    [name],
  );
  return rows;
};

describe('a provider that is connected at run time', () => {
  it('is called by agents of every process without a restart', async () => {
    const name = newName();
    expect(await connect(name)).toMatchObject({ name, origin: 'connected', key: 'stored', ready: true });
    const agent = await newAgent(name);
    expect(await answerOf(second, agent)).toBe('hello');
    expect(await answerOf(first, agent)).toBe('hello');
  });

  it('is a fact without its key, and no table but that of keys has a part of it', async () => {
    const name = newName();
    await connect(name);
    const [event] = await eventsAbout(name);
    expect(event).toMatchObject({
      type: 'ProviderConnected',
      data: { name, kind: 'openai', baseUrl: `${server.url}/v1`, actor: 'key/k1' },
    });
    const { rows } = await query<{ text: string }>(
      `select string_agg(data::text || metadata::text, '') as text from events`,
    );
    expect(rows[0]?.text).not.toContain('canary');
  });

  it('uses another key within a second, in every process', async () => {
    const name = newName();
    await connect(name);
    const agent = await newAgent(name);
    expect(await answerOf(second, agent)).toBe('hello');
    accepted = OTHER_KEY;
    await connect(name, { secret: OTHER_KEY });
    await until(async () => (await answerOf(second, agent)) === 'hello');
    expect((await eventsAbout(name)).map(({ type }) => type)).toEqual([
      'ProviderConnected',
      'ProviderReconnected',
    ]);
  });

  it('is not called any more once it is removed, and its key is deleted with the fact', async () => {
    const name = newName();
    await connect(name);
    const agent = await newAgent(name);
    expect(await answerOf(second, agent)).toBe('hello');
    expect(await remove(name)).toEqual({ removed: true });
    expect(await remove(name)).toEqual({ removed: false });
    const { rows } = await query('select from provider_credentials where provider = $1', [name]);
    expect(rows).toEqual([]);
    await until(async () => {
      const before = requests().length;
      const answer = await answerOf(second, agent);
      return Array.isArray(answer) && requests().length === before;
    });
    expect(await codeOf(newAgent(name))).toBe('PROVIDER.NOT_FOUND');
  });

  it('never gets a key of the environment of the service', async () => {
    const name = newName();
    expect(await codeOf(connect(name, { secret: undefined }))).toBe('PROVIDER.KEY_MISSING');
    await connect(name, { kind: 'openai-compatible', secret: undefined });
    await answerOf(first, await newAgent(name, first));
    expect(requests().map(({ headers }) => headers.authorization)).toEqual([undefined]);
  });

  it('gets its stored key at its own address alone', async () => {
    const name = newName();
    await connect(name);
    expect(await codeOf(connect(name, { secret: undefined, baseUrl: `${server.url}/elsewhere` }))).toBe(
      'PROVIDER.KEY_MISSING',
    );
    expect(await codeOf(connect(name, { secret: undefined }))).toBe('none');
  });

  it('has a key that changes with the provider alone', async () => {
    const name = newName();
    await connect(name);
    const credentials = first.get(Credentials);
    const place = { workspace: WORKSPACE, provider: name };
    const set = credentials.set({ ...place, secret: OTHER_KEY, caller: 'key/k1' });
    expect(await codeOf(set)).toBe('CREDENTIAL.PROVIDER_CONNECTED');
    expect(await codeOf(credentials.remove(place))).toBe('CREDENTIAL.PROVIDER_CONNECTED');
    const configured = credentials.set({ ...place, provider: 'first', secret: KEY, caller: 'key/k1' });
    expect(await codeOf(configured)).toBe('none');
  });

  it('cannot have the name of a configured one, nor be new twice', async () => {
    expect(await codeOf(connect('first'))).toBe('PROVIDER.CONFIGURED');
    expect(await codeOf(remove('first'))).toBe('PROVIDER.CONFIGURED');
    const name = newName();
    await connect(name, { isNew: true, idempotencyKey: 'once' });
    expect(await codeOf(connect(name, { isNew: true }))).toBe('PROVIDER.EXISTS');
    expect(await codeOf(connect(name, { isNew: true, idempotencyKey: 'once' }))).toBe('none');
    expect(await eventsAbout(name)).toHaveLength(1);
  });

  it('has an address that only the workspace default may choose, and never that of a metadata service', async () => {
    const foreign = { workspace: 'acme', name: newName(), caller: 'key/k1', secret: KEY };
    const connectTo = (spec: object) =>
      codeOf(
        first
          .get(ChangeProviders)
          .connect(connectProvider.request.parse({ ...foreign, kind: 'openai', ...spec })),
      );
    expect(await connectTo({ baseUrl: server.url })).toBe('PROVIDER.ADDRESS_REFUSED');
    expect(await connectTo({ kind: 'ollama' })).toBe('PROVIDER.ADDRESS_REFUSED');
    expect(await connectTo({})).toBe('none');
    for (const baseUrl of ['http://169.254.169.254/v1', 'http://[fd00:ec2::254]/v1', 'http://2852039166/v1'])
      expect(await codeOf(test({ baseUrl }))).toBe('PROVIDER.ADDRESS_REFUSED');
    for (const baseUrl of ['file:///etc/passwd', 'http://u:p@127.0.0.1/v1', 'http://127.0.0.1/v1?key=secret'])
      expect(await codeOf(test({ baseUrl }))).toBe('PROVIDER.BASE_URL_INVALID');
  });

  it('has the price of its kind', async () => {
    const name = newName();
    await connect(name);
    await answerOf(first, await newAgent(name, first));
    const asked = world.responders.asked.reserve.at(-1);
    expect(asked).toMatchObject({ provider: name, providerKind: 'openai' });
  });
});

describe('a test of a provider', () => {
  it('lists its models and stores nothing', async () => {
    const result = await test({});
    expect(result).toMatchObject({ works: true, problem: null, message: 'works · 2 models' });
    expect(result.models).toEqual([
      { id: 'm-large', contextTokens: 200_000, images: null, price: null },
      { id: 'm-small', contextTokens: null, images: null, price: null },
    ]);
    const { rows } = await query(`select from events where data ->> 'name' = 'openai'`);
    expect(rows).toEqual([]);
  });

  it.each([
    ['a wrong key', { secret: OTHER_KEY }, 'wrong_key', 401],
    ['no credit', { path: '/402/v1' }, 'no_access', 402],
    ['no access', { path: '/403/v1' }, 'no_access', 403],
    ['another kind of server', { path: '/404/v1' }, 'not_found', 404],
    ['too many requests', { path: '/429/v1' }, 'busy', 429],
    ['a server error', { path: '/503/v1' }, 'busy', 503],
    ['a page instead of an API', { path: '/html/v1' }, 'unexpected', null],
    ['an unknown host', { baseUrl: 'http://no-such-host.invalid/v1' }, 'unreachable', null],
    ['a closed port', { baseUrl: 'http://127.0.0.1:9/v1' }, 'unreachable', null],
  ])(
    'says that %s is the cause, without the key',
    async (_what, { path, ...spec }: Spec & { path?: string }, problem, status) => {
      const result = await test({
        ...(path === undefined ? {} : { baseUrl: `${server.url}${path}` }),
        ...spec,
      });
      expect(result).toMatchObject({ works: false, problem, status, models: [] });
      expect(result.message).not.toBe('');
      expect(JSON.stringify(result)).not.toContain('canary');
    },
  );

  it('of a stored provider uses the stored key', async () => {
    const name = newName();
    await connect(name);
    const request = listProviderModels.request.parse({ workspace: WORKSPACE, name });
    expect(await second.get(ReadProviders).listModels(request)).toMatchObject({ works: true });
    expect(await codeOf(second.get(ReadProviders).listModels({ ...request, name: 'none' }))).toBe(
      'PROVIDER.NOT_FOUND',
    );
  });
});

describe('an agent that is changed at run time', () => {
  it('has its next answer by the other model, also as the default agent of another process', async () => {
    const name = newName();
    await connect(name);
    const changed = await change('main', { provider: name, model: 'm-large', systemPrompt: 'Be Ann.' });
    expect(changed).toMatchObject({ provider: name, model: 'm-large' });
    expect(changed.overrides).toEqual(['model', 'provider', 'systemPrompt']);
    await until(async () => (await answerOf(second, 'main')) === 'hello');
    expect(JSON.stringify(server.requests.at(-1)?.body)).toContain('Be Ann.');
    const reset = await change('main', { provider: null, model: null, systemPrompt: null });
    expect(reset).toMatchObject({ provider: 'first', model: 'm' });
    expect(reset.overrides).toBeUndefined();
  });

  it('keeps its changes over a start, and an absent field keeps its value', async () => {
    await change('main', { capabilities: ['research'] });
    const again = startProcess();
    await again.started;
    expect(await change('main', { tools: ['echo', 'calculator'] }, OPERATOR, again)).toMatchObject({
      ...{ capabilities: ['research'], tools: ['echo', 'calculator'] },
      overrides: ['capabilities', 'tools'],
    });
    await change('main', { capabilities: null, tools: null });
  });

  it('adds no fact for a repeated change', async () => {
    const agent = await newAgent('first', first);
    const countFacts = async () =>
      (await query(`select from events where data ->> 'agentId' = $1`, [agent])).rowCount;
    await change(agent, { model: 'other' });
    const before = await countFacts();
    await change(agent, { model: 'other' });
    expect(await countFacts()).toBe(before);
  });

  it('needs an operator, a known provider, and a model of another provider', async () => {
    const member: AgentActor = { ...OPERATOR, role: 'member' };
    expect(await codeOf(change('main', { model: 'x' }, member))).toBe('AGENT.NOT_ALLOWED');
    expect(await codeOf(change('main', { model: 'x' }, { ...OPERATOR, agentId: 'main' }))).toBe(
      'AGENT.NOT_ALLOWED',
    );
    expect(await codeOf(change('main', { provider: 'none', model: 'x' }))).toBe('PROVIDER.NOT_FOUND');
    expect(await codeOf(change('none', { model: 'x' }))).toBe('AGENT.NOT_FOUND');
    const name = newName();
    await connect(name);
    expect(await codeOf(change('main', { provider: name }))).toBe('SESSION.NO_MODEL');
  });
});

describe('a secret of a workspace', () => {
  const name = 'github';
  const SECRET = 'canary-secret-of-a-tool-5e1c0b7f';
  const set = (workspace: string, secret: string, process = first) =>
    process.get(SecretsHandler).set(setSecret.request.parse({ workspace, name, secret, caller: 'key/k1' }));
  const read = async (workspace: string, process = first) =>
    (await process.get(SecretsHandler).read(readSecret.request.parse({ workspace, name }))).secret;
  const remove = (workspace: string) =>
    first.get(SecretsHandler).remove(removeSecret.request.parse({ workspace, name, caller: 'key/k1' }));

  it('is read in its own workspace alone, replaced and removed, with a fact for each change', async () => {
    await set(WORKSPACE, SECRET);
    expect([await read(WORKSPACE, second), await read('globex')]).toEqual([SECRET, null]);
    await set(WORKSPACE, `${SECRET}-new`, second);
    await until(async () => (await read(WORKSPACE)) === `${SECRET}-new`);
    const { secrets } = await first
      .get(SecretsHandler)
      .list(listSecrets.request.parse({ workspace: WORKSPACE }));
    expect(secrets).toMatchObject([{ name, createdBy: 'key/k1' }]);
    expect([await remove(WORKSPACE), await remove(WORKSPACE)]).toEqual([
      { removed: true },
      { removed: false },
    ]);
    expect(await read(WORKSPACE)).toBeNull();
    const { rows } = await query<{ type: string; text: string }>(
      `select type, data::text as text from events where type like 'Secret%' order by position`,
    );
    expect(rows.map(({ type }) => type)).toEqual(['SecretStored', 'SecretStored', 'SecretRemoved']);
    expect(rows.map(({ text }) => text).join()).not.toContain(SECRET);
  });
});
