import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore } from '@antiphon/event-store';
import { createCertificates, newEvent, type TestCertificates } from '@antiphon/testing';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import type { MockScript } from '@antiphon/testing/providers';
import { readApi, startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { readEvents, runCli, waitForValue } from './stack-under-test.js';

jest.setTimeout(120_000);

let script: MockScript = () => ({ text: ['fine'] });
let world: DashboardWorld;
let client: SocketClient;
let certificates: TestCertificates;
let server: Server;
let peers = 0;

const agentAt = (name: string, baseUrl: string): string => `
[[providers]]
name = "${name}"
kind = "openai"
base_url = "${baseUrl}"
api_key_env = "E2E_PROVIDER_KEY"

[[agents]]
id = "${name}"
provider = "${name}"
model = "gpt-4o"
`;

beforeAll(async () => {
  certificates = createCertificates();
  const [cert, key] = [certificates.serverCert, certificates.serverKey].map((path) => readFileSync(path));
  server = createServer({ cert, key }, (_request, response) => response.end());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const untrusted = `https://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  world = await startDashboardWorld({
    model: (request) => script(request),
    settings: agentAt('nowhere', 'https://models.invalid/v1') + agentAt('untrusted', untrusted),
  });
  client = await connectClient(world.stack.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await world?.stop();
  server?.close();
  certificates?.remove();
});

/** Reads the text of a page once it is loaded. */
const pageText = async (path: string): Promise<string> => {
  await world.page.goto(path);
  await world.page.getByRole('heading', { level: 1 }).waitFor();
  await world.page.locator('main p[aria-busy=true]').first().waitFor({ state: 'detached' });
  return world.page.locator('main').innerText();
};

interface Failure {
  readonly code: string;
  readonly message: string;
}
/** Sends a message of a new session. Returns its session, and the error that it ended with. */
const fail = async (agent: string) => {
  const params = { channel: 'test', account: 'e2e', peer: `refused-${++peers}`, content: 'hello', agent };
  const frames = await client.stream('chat.send', params).done();
  const { sessionId } = frames[0]?.data as { sessionId: string };
  expect(frames.at(-1)?.data).toMatchObject({ status: 'failed' });
  const error = frames.find(({ event }) => event === 'error')?.data as Failure;
  expect(frames.filter(({ event }) => event === 'usage')).toEqual([]);
  return { sessionId, error };
};

/** Returns the ends of a session's reservations, once each has one. */
const endsOf = (sessionId: string) =>
  waitForValue('the end of each reservation', async () => {
    const events = (await readEvents(world.stack, { category: 'budget' })).filter(({ type }) =>
      /^Budget(?:Reserved|Settled|Released|Expired)$/.test(type),
    );
    const isBegin = ({ type }: { type: string }) => type === 'BudgetReserved';
    const own = new Set(
      events
        .filter((event) => isBegin(event) && event.data['sessionId'] === sessionId)
        .map(({ data }) => data['reservationId']),
    );
    const ends = events.filter((event) => !isBegin(event) && own.has(event.data['reservationId']));
    return own.size > 0 && ends.length === own.size ? ends.map(({ type }) => type) : undefined;
  });
/** Sums of a workspace that has paid for nothing. */
const NOTHING = {
  ...{ settledMicroUsd: 0, settledTokens: 0, estimatedMicroUsd: 0, estimatedTokens: 0 },
  ...{ inputTokens: 0, outputTokens: 0 },
};
const readTotal = async () =>
  (await readApi<{ total: Record<string, number> }>(world, '/api/v1/usage?by=model')).total;

const answers =
  (status: number, error: object): MockScript =>
  () => ({ status, body: { error } });
/** The refusals: agent, response of its provider, what the sentence says, calls. */
const REFUSALS = [
  ['a wrong key', 'gpt', answers(401, { message: 'Incorrect API key' }), /the provider refused the key/, 1],
  ['spent credit', 'gpt', answers(402, { message: 'Insufficient credits' }), /no credit/, 1],
  [
    'an unknown model',
    'gpt',
    answers(404, { message: 'no such model' }),
    /check the name of the model and base_url/,
    1,
  ],
  ['429', 'gpt', answers(429, { message: 'slow down' }), /provider error 429: slow down/, 3],
  ['503', 'gpt', answers(503, { message: 'busy' }), /provider error 503: busy/, 3],
  [
    'a failure of DNS',
    'nowhere',
    answers(500, {}),
    /no connection to models\.invalid:443 .*; check base_url/,
    3,
  ],
  [
    'a failure of TLS',
    'untrusted',
    answers(500, {}),
    /the certificate of 127\.0\.0\.1:\d+ is not trusted .*; set ca_file/,
    1,
  ],
] as const;

describe('a turn that its provider refuses', () => {
  // @shows U64 U71
  it.each(REFUSALS)(
    'by %s is charged nothing and says why in one sentence: to its client, the CLI (exit code 1) and the dashboard',
    async (_why, agent, response, sentence, calls) => {
      script = response;
      const { sessionId, error } = await fail(agent);
      expect(error.code).toMatch(/^PROVIDER\./);
      expect(error.message).toMatch(sentence);
      expect(error.message).toMatch(/^[^\n]{20,400}$/);
      expect(await endsOf(sessionId)).toEqual(Array(calls).fill('BudgetReleased'));
      expect(await readTotal()).toMatchObject(NOTHING);

      const args = ['chat', 'hello', '--agent', agent, '--peer', `cli-${++peers}`];
      const { code, stdout, stderr } = await runCli(world.stack, args);
      expect([code, stdout.trim()]).toEqual([1, '']);
      expect(stderr).toMatch(sentence);
      expect(stderr).not.toMatch(/\n\s+at /);

      const text = await pageText(`/sessions/${sessionId}`);
      expect(text).toContain(`${error.message} (${error.code})`);
      expect(text).toMatch(/\nfailed\n[\s\S]*\nTokens\n0 in, 0 out\nCost\n\$0\.00\n/);
    },
  );
});

describe('an agent in the state error', () => {
  it('says on its page why, and when its backoff ends', async () => {
    const [spawned] = (await readEvents(world.stack, { type: 'AgentSpawned' })).filter(
      ({ data }) => data['agentId'] === 'claude',
    );
    const at = new Date();
    const retryAt = new Date(at.getTime() + 60 * 60_000).toISOString();
    const data = { agentId: 'claude', actor: 'runtime', reason: null, code: 'TURN.DRIVER_LOST' };
    const event = {
      ...newEvent({ ...data, failures: 2, retryAt, at: at.toISOString() }),
      type: 'AgentFailed',
    };
    const pool = createPool({ url: world.stack.databaseUrl, applicationName: 'spec' });
    const streams = [{ streamId: spawned?.streamId ?? '', expectedVersion: 'any' as const, events: [event] }];
    await createPostgresEventStore(pool).append({ workspace: 'default', streams });
    await pool.end();
    await waitForValue('the state', async () =>
      (await readApi<{ state: string }>(world, '/api/v1/agents/claude')).state === 'error' ? true : undefined,
    );
    const text = await pageText('/agents/claude');
    expect(text).toMatch(/TURN\.DRIVER_LOST, 2 in a row; one waiting turn is tried at/);
    const time = world.page.locator('dd', { hasText: 'TURN.DRIVER_LOST' }).locator('time');
    expect(await time.getAttribute('datetime')).toBe(retryAt);
    const params = {
      channel: 'test',
      account: 'e2e',
      peer: `held-${++peers}`,
      content: 'hi',
      agent: 'claude',
    };
    const waiting = client.stream('chat.send', params);
    await waiting.waitFor('blocked', ({ event: kind }) => kind === 'blocked');
    const port = world.stack.stackJson().services['agent']?.[0]?.port;
    await waitForValue('the metrics', async () => {
      const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      return /^antiphon_agents_in_error 1$/m.test(metrics) && /^antiphon_turns_blocked 1$/m.test(metrics)
        ? true
        : undefined;
    });
    await client.call('agent.control', { agentId: 'claude', action: 'resume' });
    script = () => ({ text: ['fine'] });
    expect((await waiting.done()).at(-1)?.data).toMatchObject({ status: 'completed' });
  });
});

it('leaves a page without an error of its own', () => {
  expect([world.leaks, world.errors]).toEqual([[], []]);
});
