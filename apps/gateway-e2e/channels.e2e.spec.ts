import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { TestStack } from '@antiphon/testing/stack';
import pg from 'pg';
import {
  PLATFORM_SECRETS,
  describePlatformChannels,
  platformChannels,
} from './describe-platform-channels.js';
import { describeApprovalButtons } from './describe-approval-buttons.js';
import { FakePlatform } from './fake-platform.js';
import { PLATFORM_TOKEN } from './platform-payloads.js';
import { readEvents, scriptedConfig, startQuickStack, waitForValue } from './stack-under-test.js';

jest.setTimeout(120_000);

const TOKEN = 'canary-channel-token-7d0e5a1c9b3f4e62';
const SECRET = 'canary-channel-secret-0a9b8c7d6e5f';

let platform: FakePlatform;
let stack: TestStack;

const configOf = (url: string): string =>
  scriptedConfig(`
[[agents]]
id = "main"
provider = "scripted"

[[agents]]
id = "support"
provider = "scripted"

[[channels]]
name = "mock"
allow = ["alice"]

[[channels]]
name = "later"
plugin = "mock"
account = "shop"
base_url = "${url}"
allow = ["alice", "bob", "carol"]
messages_per_minute = 40

[[bindings]]
agent = "support"
channel = "later"
peer = "bob"
${platformChannels(url)}`);

interface Delivered {
  readonly status: number;
  readonly text: string;
}

const post = async (
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = { 'x-antiphon-channel-secret': SECRET },
): Promise<Delivered> => {
  const response = await fetch(`${stack.gatewayUrl}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
};

const api = async (method: string, path: string, body?: unknown): Promise<Record<string, unknown>> => {
  const response = await fetch(`${stack.gatewayUrl}/api/v1${path}`, {
    method,
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Record<string, unknown>;
};

const typesOf = async (messageId: unknown): Promise<string[]> =>
  (await readEvents(stack, { category: 'channel' }))
    .filter(({ data }) => data['messageId'] === messageId)
    .map(({ type }) => type);

const receivedOf = async (deliveryId: string) =>
  (await readEvents(stack, { category: 'channel' })).find(
    ({ type, data }) =>
      type === 'ChannelMessageReceived' &&
      (data['message'] as { deliveryId: string }).deliveryId === deliveryId,
  );

beforeAll(async () => {
  platform = await FakePlatform.start();
  stack = await startQuickStack(configOf(platform.url));
  for (const channel of ['mock', 'later']) {
    await api('PUT', `/channels/${channel}/secrets/secret`, { secret: SECRET });
    await api('PUT', `/channels/${channel}/secrets/token`, { secret: TOKEN });
  }
  for (const { channel, name, secret } of PLATFORM_SECRETS)
    await api('PUT', `/channels/${channel}/secrets/${name}`, { secret });
});
afterAll(async () => {
  await stack?.stop();
  await platform?.close();
});

describe('a delivery of the mock platform', () => {
  // @shows C19 O2 O4
  it('reaches an agent, whose answer is the response in the form of the platform', async () => {
    const sent = await post('/webhook/mock', { id: 'm-1', from: 'alice', text: 'hello agent' });
    expect(sent.status).toBe(200);
    const reply = JSON.parse(sent.text) as Record<string, unknown>;
    expect(reply).toMatchObject({ to: 'alice', reply_to: 'm-1', part: 0 });
    expect(reply['text']).toContain('hello agent');
    const received = await receivedOf('m-1');
    expect(await typesOf(received?.data['messageId'])).toEqual([
      'ChannelMessageReceived',
      'ChannelTurnStarted',
      'ChannelReplyQueued',
      'ChannelReplyAttempted',
      'ChannelReplySent',
    ]);
    // A repeat of the ended delivery gets the same response, and no second turn.
    expect(await post('/webhook/mock', { id: 'm-1', from: 'alice', text: 'hello agent' })).toEqual(sent);
    expect(await typesOf(received?.data['messageId'])).toHaveLength(5);
  });

  it('is refused with the wrong secret or for an unknown channel, by the same body', async () => {
    const wrong = await post('/webhook/mock', { id: 'x' }, { 'x-antiphon-channel-secret': 'wrong' });
    const unknown = await post('/webhook/nope', { id: 'x' });
    const outside = await post('/webhook/..%2f..%2fadmin', { id: 'x' });
    expect([wrong.status, unknown.status, outside.status]).toEqual([401, 404, 404]);
    expect([unknown.text, outside.text]).toEqual([wrong.text, wrong.text]);
    expect((await post('/webhook/mock', { id: 'x' }, {})).status).toBe(401);
  });

  it('is read as bytes: duplicate keys and spaces keep their meaning for the signature', async () => {
    const body = '{ "id" : "m-raw",  "from":"alice", "text":"first", "text":"caf\\u00e9" }';
    expect((await post('/webhook/mock', body)).status).toBe(200);
  });

  it('above the limit of the channel is refused before it is read', async () => {
    const sent = await post('/webhook/mock', 'x'.repeat(1024 * 1024 + 1));
    expect(sent.status).toBe(413);
  });

  it('that the plug-in cannot read is a dead letter, and blocks no other one', async () => {
    expect(await post('/webhook/mock', '[1, 2')).toEqual({ status: 200, text: '' });
    const failed = (await readEvents(stack, { category: 'channel' })).filter(
      ({ type }) => type === 'ChannelDeliveryFailed',
    );
    expect(failed).toHaveLength(1);
    expect(failed[0]?.data).toMatchObject({
      channel: 'mock',
      code: 'CHANNEL.PLUGIN_ERROR',
      bytes: 5,
      tries: 3,
    });
    expect(
      (await post('/webhook/mock', { id: 'm-after', from: 'alice', text: 'still there' })).text,
    ).toContain('still there');
  });

  it('of a bot is refused', async () => {
    expect(await post('/webhook/mock', { id: 'm-bot', from: 'alice', text: 'hi', bot: true })).toEqual({
      status: 200,
      text: '',
    });
    const refused = (await readEvents(stack, { category: 'channel' })).filter(
      ({ data }) => data['deliveryId'] === 'm-bot',
    );
    expect(refused.map(({ type, data }) => [type, data['reason']])).toEqual([
      ['ChannelMessageRefused', 'bot'],
    ]);
  });
});

describe('a new peer', () => {
  it('is refused until it sends a code of the operator, which works once', async () => {
    expect((await post('/webhook/mock', { id: 'p-1', from: 'mallory', text: 'hello' })).text).toBe('');
    const { code } = await api('POST', '/channels/mock/pairing-codes');
    const paired = await post('/webhook/mock', { id: 'p-2', from: 'carol', text: String(code) });
    expect(paired.text).toContain('You are paired');
    expect((await post('/webhook/mock', { id: 'p-3', from: 'carol', text: 'hello you' })).text).toContain(
      'hello you',
    );
    expect((await post('/webhook/mock', { id: 'p-4', from: 'mallory', text: String(code) })).text).toBe('');
    await api('PUT', '/channels/mock/peers/carol', { action: 'block' });
    expect((await post('/webhook/mock', { id: 'p-5', from: 'carol', text: 'hello' })).text).toBe('');
    const { peers } = await api('GET', '/channels/mock/peers');
    expect(peers).toMatchObject([{ peer: 'carol', state: 'blocked' }]);
    const events = await readEvents(stack, { category: 'channel' });
    expect(JSON.stringify(events)).not.toContain(String(code));
    const reasons = events
      .filter(({ type }) => type === 'ChannelMessageRefused')
      .map(({ data }) => data['reason']);
    expect(reasons).toEqual(expect.arrayContaining(['unpaired', 'blocked']));
  });
});

describe('a reply outside of the response', () => {
  interface Sent {
    readonly to: string;
    readonly text: string;
    readonly reply_to: string;
  }
  const sentTo = (id: string): Sent[] =>
    platform.bodies<Sent>(/^\/messages$/).filter((body) => body.reply_to === id);

  // @shows E7 O3
  it('goes to the platform once, with the token, however often the delivery is repeated', async () => {
    const body = { id: 'l-1', from: 'alice', text: 'storm' };
    const answers = await Promise.all(Array.from({ length: 20 }, () => post('/webhook/later', body)));
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
    const received = await receivedOf('l-1');
    await waitForValue(
      'the end of the reply',
      async () => (await typesOf(received?.data['messageId'])).includes('ChannelReplySent') || undefined,
    );
    expect(sentTo('l-1')).toHaveLength(1);
    expect(sentTo('l-1')[0]?.text).toContain('storm');
    const request = platform.requests.find(({ body: text }) => text.includes('l-1'));
    expect(request?.headers.authorization).toBe(`Bearer ${TOKEN}`);
    const turns = (await readEvents(stack, { category: 'session' })).filter(
      ({ type, data }) => type === 'TurnRequested' && String(data['content']).includes('storm'),
    );
    expect(turns).toHaveLength(1);
  });

  it('follows the bindings, and keeps the session key within its channel and account', async () => {
    await post('/webhook/later', { id: 'l-2', from: 'bob', peer: 'bob', text: 'to support', agent: 'main' });
    await waitForValue('the reply', () => Promise.resolve(sentTo('l-2')[0]));
    const started = (await readEvents(stack, { category: 'session' })).filter(
      ({ type }) => type === 'SessionStarted',
    );
    expect(started.map(({ data }) => data['sessionKey'])).toContain('support:later:shop:bob');
  });

  it('is retried after 429 and 503 as the platform says, and not after a refusal', async () => {
    let tries = 0;
    platform.answer = ({ body }) => {
      if (body.includes('l-3')) {
        tries++;
        if (tries === 1) return { status: 429, headers: { 'retry-after': '1' } };
        return tries === 2 ? { status: 503 } : { body: { id: 'platform-3' } };
      }
      return body.includes('l-4') ? { status: 403 } : {};
    };
    await post('/webhook/later', { id: 'l-3', from: 'alice', text: 'limited' });
    await post('/webhook/later', { id: 'l-4', from: 'carol', text: 'forbidden' });
    const received = await receivedOf('l-3');
    await waitForValue(
      'the end of the reply',
      async () => (await typesOf(received?.data['messageId'])).includes('ChannelReplySent') || undefined,
    );
    expect(sentTo('l-3')).toHaveLength(3);
    const refused = await receivedOf('l-4');
    const dead = await waitForValue('the dead letter', async () => {
      const { deliveries } = await api('GET', '/deliveries?state=dead&channel=later');
      return (deliveries as { messageId: string; code: string }[]).find(
        ({ messageId }) => messageId === refused?.data['messageId'],
      );
    });
    expect(dead).toMatchObject({ code: 'HTTP.403', state: 'failed' });
    expect(sentTo('l-4')).toHaveLength(1);
    platform.answer = () => ({});
    await api('POST', `/deliveries/${dead.messageId}/replay`);
    await waitForValue(
      'the replayed reply',
      async () => (await typesOf(dead.messageId)).includes('ChannelReplySent') || undefined,
    );
    expect(sentTo('l-4')).toHaveLength(2);
  });

  it('whose outcome is lost is not sent again, and is a fact', async () => {
    platform.answer = ({ body }) => (body.includes('l-5') ? { drops: true } : {});
    await post('/webhook/later', { id: 'l-5', from: 'alice', text: 'dropped' });
    const received = await receivedOf('l-5');
    await waitForValue(
      'the unknown outcome',
      async () => (await typesOf(received?.data['messageId'])).includes('ChannelReplyUnknown') || undefined,
    );
    platform.answer = () => ({});
    expect(sentTo('l-5')).toHaveLength(1);
  });

  it('begins a new session after /new', async () => {
    await post('/webhook/later', { id: 'l-6', from: 'carol', text: '/new' });
    const reply = await waitForValue('the reply', () => Promise.resolve(sentTo('l-6')[0]));
    expect(reply.text).toBe('A new session has begun.');
  });

  it('refuses messages over the limit of a peer', async () => {
    await Promise.all(
      Array.from({ length: 45 }, (_, n) =>
        post('/webhook/later', { id: `flood-${n}`, from: 'flooder', text: 'x' }),
      ),
    );
    const reasons = (await readEvents(stack, { category: 'channel' }))
      .filter(({ data }) => String(data['deliveryId']).startsWith('flood-'))
      .map(({ data }) => data['reason']);
    expect(reasons).toContain('rate_limited');
  });
});

describePlatformChannels(() => ({ stack, platform }));
describeApprovalButtons(() => ({ stack, platform }));

describe('the secrets of a channel', () => {
  // @shows E7
  it('are in no event, no log line and no table but the encrypted one', async () => {
    const events = JSON.stringify(await readEvents(stack));
    const folder = join(stack.home, 'logs');
    const logs = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'utf8'));
    for (const text of [events, ...logs]) {
      expect(text).not.toContain(TOKEN);
      expect(text).not.toContain(SECRET);
      expect(text).not.toContain(PLATFORM_TOKEN);
    }
    const client = new pg.Client({ connectionString: stack.databaseUrl });
    await client.connect();
    const { rows } = await client.query<{ name: string }>(
      `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'`,
    );
    for (const { name } of rows) {
      const found = await client.query(`select 1 from "${name}" t where t::text like any ($1) limit 1`, [
        [`%${TOKEN}%`, `%${SECRET}%`],
      ]);
      expect([name, found.rowCount]).toEqual([name, 0]);
    }
    await client.end();
    const { credentials } = await api('GET', '/credentials');
    expect(credentials).toEqual([]);
  });
});
