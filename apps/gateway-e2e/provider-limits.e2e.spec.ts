import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { createCertificates, type TestCertificates } from '@antiphon/testing';
import { connectClient, textOf, type SocketClient } from '@antiphon/testing/client';
import {
  startForwardProxy,
  startMockModel,
  type ForwardProxy,
  type MockModel,
  type MockScript,
} from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import { letTimePass, until } from '@antiphon/testing/waits';
import { readEvents, runCli, startStackWith, waitForRoot, waitForValue } from './stack-under-test.js';

jest.setTimeout(120_000);

const PASSWORD = 'canary0of0the0proxy';

/** Limits of a second stand for waits of minutes. */
const configFor = (mock: string, proxy: string, tls: string): string => `
[gateway]
port = 0

[[providers]]
name = "plain"
kind = "openai-compatible"
base_url = "${mock}/v1"

[[providers]]
name = "slow"
kind = "openai-compatible"
base_url = "${mock}/v1"
first_byte_s = 1
tries = 2

[[providers]]
name = "narrow"
kind = "openai-compatible"
base_url = "${mock}/v1"
concurrent_calls = 1

[[providers]]
name = "remote"
kind = "openai-compatible"
base_url = "http://models.example/v1"
proxy = "${proxy}"

[[providers]]
name = "company"
kind = "openai-compatible"
base_url = "http://company.example/v1"

[[providers]]
name = "nowhere"
kind = "openai-compatible"
base_url = "https://models.invalid/v1"

[[providers]]
name = "untrusted"
kind = "openai-compatible"
base_url = "${tls}/v1"

[[agents]]
id = "main"
provider = "plain"
model = "deepseek-chat"

[[agents]]
id = "writer"
provider = "plain"
model = "deepseek-chat"
max_output_tokens = 777

[[agents]]
id = "slow"
provider = "slow"
model = "m"

[[agents]]
id = "patient"
provider = "slow"
model = "m"
first_byte_s = 60

[[agents]]
id = "narrow"
provider = "narrow"
model = "m"

[[agents]]
id = "company"
provider = "company"
model = "m"

[[agents]]
id = "nowhere"
provider = "nowhere"
model = "m"

[[agents]]
id = "untrusted"
provider = "untrusted"
model = "m"

[[agents]]
id = "remote"
provider = "remote"
model = "m"
`;

let script: MockScript;
let mock: MockModel;
let proxy: ForwardProxy;
let certificates: TestCertificates;
let server: Server;
let stack: TestStack;
let client: SocketClient;
let peers = 0;

beforeAll(async () => {
  mock = await startMockModel((request) => script(request));
  const credentials = `Basic ${Buffer.from(`me:${PASSWORD}`).toString('base64')}`;
  proxy = await startForwardProxy({ portOf: () => Number(new URL(mock.url).port), credentials });
  const own = proxy.url.replace('http://', `http://me:${PASSWORD}@`);
  certificates = createCertificates();
  const [cert, key] = [certificates.serverCert, certificates.serverKey].map((path) => readFileSync(path));
  server = createServer({ cert, key }, (_request, response) => response.end());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const tls = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const env = { HTTP_PROXY: own, NO_PROXY: 'localhost,127.0.0.1,::1' };
  stack = await startStackWith(configFor(mock.url, own, tls), {}, { shareDatabase: true, env });
  client = await connectClient(stack.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await proxy?.close();
  server?.close();
  certificates?.remove();
  await mock?.close();
});

beforeEach(() => {
  script = () => ({ text: ['fine'] });
});

const begin = (agent: string) => {
  const params = { channel: 'test', account: 'e2e', peer: `limits-${++peers}`, content: 'hello', agent };
  return client.stream('chat.send', params);
};

/** Sends a message of a new session. Returns its frames, its session and the calls of the provider. */
const send = async (agent: string) => {
  const before = mock.calls.length;
  const frames = await begin(agent).done();
  const { sessionId } = frames[0]?.data as { sessionId: string };
  return { frames, sessionId, calls: mock.calls.slice(before) };
};

const errorOf = (frames: Awaited<ReturnType<typeof send>>['frames']) =>
  frames.find(({ event }) => event === 'error')?.data as { code: string; message: string };

describe('max_output_tokens', () => {
  // @shows U69
  it.each([
    ['main', 8_192],
    ['writer', 777],
  ])(
    'of agent %s is asked of the provider, and bounds what the budget withholds: %i',
    async (agent, tokens) => {
      const { calls, sessionId } = await send(agent);
      expect(calls.map(({ seen }) => (seen.body as { max_tokens: number }).max_tokens)).toEqual([tokens]);
      const reserved = (await readEvents(stack, { category: 'budget' })).filter(
        ({ type, data }) => type === 'BudgetReserved' && data['sessionId'] === sessionId,
      );
      expect(reserved.map(({ data }) => data['outputBound'])).toEqual([tokens]);
    },
  );
});

describe('a limit of a wait', () => {
  const WAIT = 'provider timeout: no first byte within 1 s (first_byte_s of provider slow)';
  const hold: MockScript = () => new Promise(() => undefined);

  // @shows U68
  it('is named in the frame of the error, and the same wait at this machine is not tried again', async () => {
    script = hold;
    const { frames, calls } = await send('slow');
    expect(errorOf(frames)).toMatchObject({ code: 'PROVIDER.TIMEOUT', message: WAIT });
    expect(frames.at(-1)?.data).toMatchObject({ status: 'failed' });
    expect(calls).toHaveLength(1);
  });

  it('is named by the command line, which fails', async () => {
    script = hold;
    const { code, stderr } = await runCli(stack, ['chat', 'hello', '--agent', 'slow']);
    expect(code).toBe(1);
    expect(stderr).toContain(WAIT);
  });

  it('of an agent replaces that of its provider', async () => {
    script = async () => {
      await letTimePass(1_300);
      return { text: ['at last'] };
    };
    const { frames } = await send('patient');
    expect(textOf(frames)).toBe('at last');
  });

  it('counts tries as its settings say, which a replay of the session accepts', async () => {
    script = () => ({ status: 503, body: { error: { message: 'busy' } } });
    const { calls, sessionId, frames } = await send('slow');
    expect(calls).toHaveLength(2);
    expect(errorOf(frames).message).toContain('provider error 503: busy');
    const { code, stdout } = await runCli(stack, ['session', 'replay', sessionId, '--strict']);
    expect([code, stdout]).toEqual([0, expect.any(String)]);
  });
});

describe('concurrent_calls', () => {
  it('lets a turn wait, and a turn that waits be cancelled', async () => {
    let answer = (): void => undefined;
    const held = new Promise<void>((resolve) => (answer = resolve));
    script = async () => {
      await held;
      return { text: ['fine'] };
    };
    const before = mock.calls.length;
    const first = begin('narrow');
    await until(() => mock.calls.length === before + 1);
    const second = begin('narrow');
    const { sessionId, turnId } = (await second.waitFor('accepted', ({ event }) => event === 'accepted'))
      .data as Record<string, string>;
    await until(async () =>
      (await readEvents(stack, { category: 'session' })).some(
        ({ type, data }) => type === 'ModelCallStarted' && data['turnId'] === turnId,
      ),
    );
    expect(mock.calls).toHaveLength(before + 1);
    const port = stack.stackJson().services['agent']?.[0]?.port;
    await until(async () =>
      /^antiphon_model_calls_waiting 1$/m.test(
        await (await fetch(`http://127.0.0.1:${port}/metrics`)).text(),
      ),
    );
    await client.call('session.cancel', { sessionId });
    expect((await second.done()).at(-1)?.data).toMatchObject({ status: 'cancelled' });
    answer();
    expect((await first.done()).at(-1)?.data).toMatchObject({ status: 'completed' });
    expect(mock.calls).toHaveLength(before + 1);
  });
});

describe('a provider behind a proxy', () => {
  // @shows U70
  it('answers, and the password of the proxy is in no event, log or answer', async () => {
    const { frames } = await send('remote');
    expect(textOf(frames)).toBe('fine');
    expect(proxy.requests.map(({ target }) => target)).toEqual(['http://models.example/v1/chat/completions']);
    script = () => ({ status: 400, body: { error: { message: `refused for ${PASSWORD}` } } });
    await send('remote');
    const shown = await runCli(stack, ['provider', 'show', 'remote']);
    const config = await (await fetch(`${stack.gatewayUrl}/api/v1/config`)).text();
    const logs = join(stack.home, 'logs');
    const everything = [
      JSON.stringify(await readEvents(stack)),
      ...readdirSync(logs, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'utf8')),
      ...[shown.stdout, shown.stderr, config],
    ].join('\n');
    expect(everything).toContain('models.example');
    for (const secret of [PASSWORD, Buffer.from(`me:${PASSWORD}`).toString('base64')])
      expect(everything).not.toContain(secret);
  });
});

it('HTTP_PROXY of the environment of `npm start` is used by calls of providers alone', async () => {
  const before = proxy.requests.length;
  const { frames } = await send('company');
  expect(textOf(frames)).toBe('fine');
  expect(proxy.requests.slice(before).map(({ target }) => target)).toEqual([
    'http://company.example/v1/chat/completions',
  ]);
  expect(proxy.requests.filter(({ target }) => !target.includes('.example'))).toEqual([]);
});

describe('a provider that cannot be reached', () => {
  it.each([
    [
      'nowhere',
      3,
      /^provider unreachable: no connection to models\.invalid:443 \(E[A-Z_]+\); check base_url/,
    ],
    [
      'untrusted',
      1,
      /^provider unreachable: the certificate of 127\.0\.0\.1:\d+ is not trusted \([A-Z_]+\); set ca_file of the/,
    ],
  ])('(%s) is charged nothing, after %i tries, and says what to do', async (agent, tries, text) => {
    const { frames, sessionId } = await send(agent);
    expect(errorOf(frames)).toMatchObject({
      code: 'PROVIDER.UNREACHABLE',
      message: expect.stringMatching(text),
    });
    const aborted = (await readEvents(stack, { category: 'session' })).filter(
      ({ type, streamId }) => type === 'ModelCallAborted' && streamId === `session-${sessionId}`,
    );
    expect(aborted.map(({ data }) => data['dispatched'])).toEqual(Array(tries).fill(false));
    const ends = await waitForValue('the end of each reservation', async () => {
      const events = await readEvents(stack, { category: 'budget' });
      const reserved = new Set(
        events
          .filter(({ type, data }) => type === 'BudgetReserved' && data['sessionId'] === sessionId)
          .map(({ data }) => data['reservationId']),
      );
      const found = events.filter(
        ({ type, data }) => type !== 'BudgetReserved' && reserved.has(data['reservationId']),
      );
      return found.length === tries ? found : undefined;
    });
    expect(new Set(ends.map(({ type }) => type))).toEqual(new Set(['BudgetReleased']));
    const { code, stderr } = await runCli(stack, ['chat', 'hello', '--agent', agent]);
    expect([code, stderr]).toEqual([1, expect.stringContaining('provider unreachable')]);
  });
});

describe('antiphon provider show', () => {
  const env = () => ({ ANTIPHON_CONFIG: join(stack.home, 'antiphon.toml') });

  it('prints each limit with its value and its place', async () => {
    const { code, stdout } = await runCli(stack, ['provider', 'show', 'slow'], env());
    expect(code).toBe(0);
    const lines = stdout.replaceAll(/ +/g, ' ').split('\n');
    expect(lines).toEqual(
      expect.arrayContaining([
        ' first_byte_s 1 provider slow',
        ' between_bytes_s 600 default of a loopback address',
        ' retry_timeouts false default of a loopback address',
        ' tries 2 provider slow',
        ' concurrent_calls no limit default',
        ' agent patient, model m',
        ' first_byte_s 60 agent patient',
      ]),
    );
  });

  it('has the same as JSON, for all providers or for one', async () => {
    const all = await runCli(stack, ['provider', 'show', '--json'], env());
    const { providers } = JSON.parse(all.stdout) as { providers: { name: string; limits: object }[] };
    expect(providers.map(({ name }) => name).slice(0, 4)).toEqual(['plain', 'slow', 'narrow', 'remote']);
    expect(providers[2]?.limits).toMatchObject({ concurrent_calls: { value: 1, from: 'provider narrow' } });
    const one = await runCli(stack, ['provider', 'show', 'remote', '--json'], env());
    expect(JSON.parse(one.stdout)).toMatchObject({
      providers: [{ proxy: proxy.url, proxyFrom: 'proxy of provider remote' }],
    });
  });

  it('refuses an unknown name, with the nearest one', async () => {
    const { code, stderr } = await runCli(stack, ['provider', 'show', 'slwo'], env());
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('there is no provider "slwo"; did you mean slow?'),
    ]);
  });
});

it('leaves a log that the audit accepts', async () => {
  await waitForRoot(stack);
  const { code, stdout } = await runCli(stack, ['audit']);
  expect([code, stdout]).toEqual([0, expect.stringContaining('everything holds')]);
});
