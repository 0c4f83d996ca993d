import { spawnSync } from 'node:child_process';
import { createHash, createHmac } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createClient, serveTools } from '@antiphon/client';
import type { Client, TurnFrame } from '@antiphon/client';
import { isTurnEnd } from '@antiphon/contracts/agent';
import type { TestStack } from '@antiphon/testing/stack';
import {
  createApiCaller,
  readEvents,
  runCli,
  scriptedConfig,
  startQuickStack,
  waitForValue,
} from '../stack-under-test.js';
import type { LoggedEvent } from '../stack-under-test.js';
import { RemoteWorker } from './remote-worker.js';

jest.setTimeout(60_000);

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const DOCS = readFileSync(join(ROOT, 'docs/remote-tools.md'), 'utf8');
const hasPython = spawnSync('python3', ['--version']).status === 0;
const TOOLS = ['weather', 'forecast', 'once', 'again', 'patient', 'shared', 'invoice'];
const CONFIG = scriptedConfig(`
[[agents]]
id = "main"
provider = "scripted"
tools = ${JSON.stringify(TOOLS)}

[tools]
private_hosts = ["127.0.0.1"]
`);

let stack: TestStack;
let client: Client;
let key: string;
let folder: string;
const workers: RemoteWorker[] = [];

const envOf = (name = 'worker') => ({
  ...{ ANTIPHON_URL: stack.gatewayUrl, ANTIPHON_KEY: key, WORKER_NAME: name },
  ...{ WORKER_ACTS: join(folder, 'acts'), PYTHONPATH: join(ROOT, 'clients/python/src') },
});
const startWorker = async (name?: string): Promise<RemoteWorker> => {
  const worker = await RemoteWorker.start(envOf(name));
  workers.push(worker);
  return worker;
};
const actsOf = (tool: string): number =>
  readFileSync(join(folder, 'acts'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith(`${tool} `)).length;

let peers = 0;
const address = () => ({ channel: 'test', account: 'remote', peer: `p${++peers}` });
const say = (content: string) => client.chat({ ...address(), content });
const callText = (tool: string, input: object): string => `/tool ${tool} ${JSON.stringify(input)}`;
const framesOf = async (content: string): Promise<TurnFrame[]> => {
  const frames: TurnFrame[] = [];
  for await (const frame of say(content)) frames.push(frame);
  return frames;
};
const resultOf = (frames: readonly TurnFrame[]) =>
  frames.find(({ event }) => event === 'tool_result')?.data as { content: string; is_error: boolean };
const toolEvents = async ({ sessionId }: { readonly sessionId: string }): Promise<LoggedEvent[]> =>
  waitForValue('the end of the turn', async () => {
    const events = await readEvents(stack, { stream: `session-${sessionId}` });
    return events.some(({ type }) => isTurnEnd(type))
      ? events.filter(({ type }) => type.startsWith('ToolCall'))
      : undefined;
  });
/** Waits until a tool has so many programs. */
const waitForWorkers = (tool: string, count: number): Promise<true> =>
  waitForValue(`${count} programs of ${tool}`, async () => {
    const { tools } = await client.http.listTools();
    return (tools.find(({ name }) => name === tool)?.workers ?? 0) === count ? true : undefined;
  });
const exampleOf = (language: string): string => {
  const [, text = ''] = new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(DOCS) ?? [];
  return text.replaceAll(/^ {3}/gm, '');
};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'antiphon-remote-'));
  stack = await startQuickStack(CONFIG);
  client = createClient({ url: stack.gatewayUrl });
  const { code, stdout } = await runCli(stack, ['key', 'create', 'worker', '--scopes', 'tools:serve']);
  expect(code).toBe(0);
  key = /ak_[\w-]+/.exec(stdout)?.[0] ?? '';
}, 120_000);
afterAll(async () => {
  for (const worker of workers) await worker.end();
  client?.close();
  await stack?.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe('the examples of the page', () => {
  const serve = async (command: string, args: readonly string[], tool: string) => {
    const worker = RemoteWorker.run(command, args, envOf());
    workers.push(worker);
    await waitForWorkers(tool, 1);
    return worker;
  };

  it('are of 15 lines at most', () => {
    for (const language of ['js', 'python']) {
      const lines = exampleOf(language).trim().split('\n');
      expect(lines.length).toBeGreaterThan(5);
      expect(lines.length).toBeLessThanOrEqual(15);
    }
  });

  it('serve a tool in Node that a turn uses', async () => {
    const worker = await serve(process.execPath, ['--input-type=module', '-e', exampleOf('js')], 'weather');
    const frames = await framesOf(callText('weather', { city: 'Bern' }));
    expect(resultOf(frames)).toMatchObject({ content: 'sunny in Bern', is_error: false });
    await worker.end();
    await waitForWorkers('weather', 0);
  });

  (hasPython ? it : it.skip)('serve a tool in Python that a turn uses', async () => {
    const worker = await serve('python3', ['-c', exampleOf('python')], 'forecast');
    const frames = await framesOf(callText('forecast', { city: 'Bern' }));
    expect(resultOf(frames)).toMatchObject({ content: 'rain in Bern', is_error: false });
    await worker.end('SIGTERM');
    await waitForWorkers('forecast', 0);
  });

  it('leave facts with a version and a digest, and none for the same declaration again', async () => {
    const facts = () => readEvents(stack, { stream: 'plugin-remote' });
    const before = await facts();
    expect(before[0]).toMatchObject({
      type: 'RemoteToolRegistered',
      data: { name: 'weather', version: 1, digest: expect.stringMatching(/^[0-9a-f]{64}$/) },
    });
    const worker = await serve(process.execPath, ['--input-type=module', '-e', exampleOf('js')], 'weather');
    expect(await facts()).toHaveLength(before.length);
    await worker.end();
    await waitForWorkers('weather', 0);
  });
});

describe('a key with the scope tools:serve', () => {
  const api = createApiCaller(() => stack.gatewayUrl);

  it('can do nothing else', async () => {
    for (const path of ['/agents', '/sessions', '/tools', '/events', '/keys'])
      expect((await api(key, 'GET', path)).status).toBe(403);
    const own = createClient({ url: stack.gatewayUrl, token: key });
    await expect(own.chat({ ...address(), content: 'hello' }).text()).rejects.toMatchObject({
      code: 'GATEWAY.FORBIDDEN',
    });
    own.close();
  });

  it('is needed to serve tools', async () => {
    const { body } = await api<{ token: string }>('', 'POST', '/keys', { name: 'reader', role: 'member' });
    const tools = { other: { description: 'Another.', handler: () => 'x' } };
    const server = serveTools(tools, { url: stack.gatewayUrl, key: body.token, onEvent: () => undefined });
    await expect(server.ready).rejects.toMatchObject({ code: 'CLIENT.REFUSED' });
  });

  it('registers no tool under the name of another one', async () => {
    const refused: unknown[] = [];
    const tool = { description: 'Another.', handler: () => 'x' };
    const server = serveTools(
      { echo: tool, read: tool, mcp__files__read: tool },
      { url: stack.gatewayUrl, key, onEvent: (event) => event.type === 'refused' && refused.push(event) },
    );
    await server.ready;
    expect(refused).toMatchObject(
      ['echo', 'read', 'mcp__files__read'].map((name) => ({ name, code: 'TOOL.NAME_TAKEN' })),
    );
    await server.stop();
  });
});

describe('calls of a remote tool', () => {
  it('show the progress of the program, and reach it when they are cancelled', async () => {
    let reason: unknown;
    const aborted = new Promise<void>((resolve) => {
      const handler = async (
        _: unknown,
        call: { signal: AbortSignal; progress(text: string, n: number): void },
      ) => {
        call.progress('half done', 0.5);
        await new Promise<void>((done) =>
          call.signal.addEventListener('abort', () => done(), { once: true }),
        );
        reason = call.signal.reason;
        resolve();
      };
      server = serveTools({ shared: { description: 'Waits.', handler } }, { url: stack.gatewayUrl, key });
    });
    await server.ready;
    const turn = say(callText('shared', {}));
    const seen: TurnFrame[] = [];
    for await (const frame of turn) {
      seen.push(frame);
      if (frame.event === 'progress') await turn.cancel();
    }
    await aborted;
    expect(reason).toBe('cancelled');
    expect(seen.find(({ event }) => event === 'progress')?.data).toMatchObject({
      ...{ name: 'shared', message: 'half done', fraction: 0.5 },
    });
    expect(seen.at(-1)).toMatchObject({ event: 'done', data: { status: 'cancelled' } });
    await server.stop();
  });
  let server: ReturnType<typeof serveTools>;

  /** Reads around the needle of a stored result, as an agent does. */
  const findNeedle = async (frames: readonly TurnFrame[], peer: ReturnType<typeof address>) => {
    const [, id = ''] = /result "([0-9a-f-]+)"/.exec(resultOf(frames).content) ?? [];
    const content = callText('search_result', { result: id, text: 'needle' });
    const found: TurnFrame[] = [];
    for await (const frame of client.chat({ ...peer, content })) found.push(frame);
    return resultOf(found).content;
  };
  const storedOf = async (turn: ReturnType<typeof say>) =>
    ((await toolEvents(await turn.accepted)).at(-1)?.data as { stored?: object }).stored;

  it('return 50 MiB, which is stored whole and searched', async () => {
    const half = 'é'.repeat(13 * 1024 * 1024);
    const text = `${half}needle${half.slice(6)}`;
    const tools = { shared: { description: 'Is large.', handler: () => text } };
    const large = serveTools(tools, { url: stack.gatewayUrl, key });
    await large.ready;
    const peer = address();
    const turn = client.chat({ ...peer, content: callText('shared', {}) });
    const frames: TurnFrame[] = [];
    for await (const frame of turn) frames.push(frame);
    const digest = createHash('sha256').update(text).digest('hex');
    expect(await storedOf(turn)).toEqual({ digest, size: Buffer.byteLength(text) });
    expect(resultOf(frames).content.length).toBeLessThan(40_000);
    expect(await findNeedle(frames, peer)).toContain('éneedleé');
    await large.stop();
  });

  (hasPython ? it : it.skip)('return over 4 MiB from Python', async () => {
    const program = [
      'from antiphon import Tools',
      'tools = Tools()',
      '@tools.tool',
      'def forecast(city: str) -> str:',
      '    return "é" * 1_000_000 + "needle" + "😀" * 700_000',
      'tools.serve()',
    ].join('\n');
    const worker = RemoteWorker.run('python3', ['-c', program], envOf());
    workers.push(worker);
    await waitForWorkers('forecast', 1);
    const turn = say(callText('forecast', { city: 'Bern' }));
    for await (const _ of turn);
    const text = `${'é'.repeat(1_000_000)}needle${'😀'.repeat(700_000)}`;
    const digest = createHash('sha256').update(text).digest('hex');
    expect(await storedOf(turn)).toEqual({ digest, size: Buffer.byteLength(text) });
    await worker.end('SIGTERM');
    await waitForWorkers('forecast', 0);
  });

  it('fail at once without a program', async () => {
    const turn = say(callText('shared', {}));
    expect((await toolEvents(await turn.accepted)).at(-1)).toMatchObject({
      type: 'ToolCallFailed',
      data: { code: 'TOOL.NO_WORKER', cause: { kind: 'tool_without_worker', waitedMs: 0 } },
    });
  });

  it('are shared by the programs that serve the tool', async () => {
    const [a, b] = [await startWorker('a'), await startWorker('b')];
    await waitForWorkers('again', 2);
    await Promise.all(Array.from({ length: 8 }, (_, n) => framesOf(callText('again', { n, ms: 300 }))));
    expect([a.count('acted'), b.count('acted')]).toEqual([4, 4]);
    await a.end('SIGTERM');
    await b.end('SIGTERM');
    await waitForWorkers('again', 0);
  });

  it('wait for a program if the tool declares it', async () => {
    const frames = framesOf(callText('patient', { n: 1 }));
    const worker = await startWorker('late');
    expect(resultOf(await frames)).toMatchObject({ content: 'late did 1' });
    await worker.end();
    await waitForWorkers('patient', 0);
  });

  it('have an unknown outcome after kill -9 of the program, and are not made again', async () => {
    const worker = await startWorker();
    const before = actsOf('once');
    const turn = say(callText('once', { ms: 30_000 }));
    const accepted = await turn.accepted;
    await worker.waitFor('acted');
    const spare = await startWorker('spare');
    await worker.end();
    expect((await toolEvents(accepted)).at(-1)).toMatchObject({
      type: 'ToolCallUnknown',
      data: { cause: { why: { kind: 'failed_with', code: 'TOOL.WORKER_LOST' } } },
    });
    expect(actsOf('once') - before).toBe(1);
    await spare.end();
    await waitForWorkers('once', 0);
  });

  it('are made again on another program after kill -9, if the tool is idempotent', async () => {
    const worker = await startWorker('first');
    const turn = say(callText('again', { n: 7, ms: 2_000 }));
    const accepted = await turn.accepted;
    await worker.waitFor('acted');
    await startWorker('second');
    await worker.end();
    const events = await toolEvents(accepted);
    expect(events.map(({ type }) => type)).toEqual([
      ...['ToolCallRequested', 'ToolCallDeferred', 'ToolCallCompleted'],
    ]);
    expect(events[1]?.data).toMatchObject({ reason: 'lost' });
    expect(events[2]?.data).toMatchObject({ content: 'second did 7' });
  });

  it('are listed with their source and their programs', async () => {
    const { stdout } = await runCli(stack, ['tool', 'list']);
    expect(stdout).toMatch(/^again +remote, 1 worker /m);
    expect(stdout).toMatch(/^weather +remote, 0 workers /m);
  });
});

describe('a tool over HTTP', () => {
  const SECRET = 'canary-of-a-tool-over-http-1f2e3d';
  let endpoint: Server;
  let url = '';
  let answer: (response: ServerResponse) => void = () => undefined;
  const seen: { headers: IncomingMessage['headers']; body: Record<string, unknown> }[] = [];
  const add = (...more: string[]) =>
    runCli(stack, [
      ...['tool', 'add', 'http', 'invoice', url, '--secret', 'invoices'],
      ...['--description', 'Returns an invoice.', ...more],
    ]);

  beforeAll(async () => {
    endpoint = createServer(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += String(chunk);
      seen.push({ headers: request.headers, body: JSON.parse(body) as Record<string, unknown> });
      answer(response);
    });
    await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/invoice`;
    const file = join(folder, 'invoices.secret');
    writeFileSync(file, SECRET);
    await runCli(stack, ['secret', 'set', 'invoices', '--file', file]);
  });
  afterAll(() => new Promise((resolve) => endpoint.close(resolve)));

  it('is added by the CLI, and a turn uses it by a signed request', async () => {
    expect(await add()).toMatchObject({ code: 0, stdout: `invoice: version 1, called at ${url}\n` });
    answer = (response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"content":{"total":12}}');
    const frames = await framesOf(callText('invoice', { number: 7 }));
    expect(resultOf(frames)).toMatchObject({ content: '{"total":12}', is_error: false });
    const [{ headers, body } = { headers: {}, body: {} }] = seen;
    expect(body).toMatchObject({ type: 'tools.call', tool: 'invoice', input: { number: 7 } });
    expect(headers['idempotency-key']).toBe(body['idempotencyKey']);
    const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${JSON.stringify(body)}`;
    const expected = createHmac('sha256', SECRET).update(signed).digest('base64');
    expect(headers['webhook-signature']).toBe(`v1,${expected}`);
    expect(JSON.stringify(await readEvents(stack, {}))).not.toContain(SECRET);
  });

  it('has an unknown outcome when its answer is lost, and is not called again', async () => {
    answer = (response) => response.destroy();
    const before = seen.length;
    const turn = say(callText('invoice', { number: 8 }));
    expect((await toolEvents(await turn.accepted)).at(-1)).toMatchObject({
      type: 'ToolCallUnknown',
      data: { cause: { why: { kind: 'failed_with', code: 'TOOL.WORKER_LOST' } } },
    });
    expect(seen.length - before).toBe(1);
  });

  it('is called again after a lost answer if it is idempotent, with the same key', async () => {
    expect((await add('--idempotent')).stdout).toContain('version 2');
    await waitForValue('the new version', async () => {
      const { tools } = await client.http.listTools();
      return tools.find(({ name }) => name === 'invoice')?.isIdempotent ? true : undefined;
    });
    const before = seen.length;
    answer = (response) => (seen.length === before + 1 ? response.destroy() : response.end('paid'));
    const frames = await framesOf(callText('invoice', { number: 9 }));
    expect(resultOf(frames)).toMatchObject({ content: 'paid', is_error: false });
    const keys = seen.slice(before).map(({ headers }) => headers['idempotency-key']);
    expect([keys.length, new Set(keys).size]).toEqual([2, 1]);
  });

  it('fails before it is called without its secret, and is removed', async () => {
    await runCli(stack, ['secret', 'remove', 'invoices']);
    const secretless = await waitForValue('a call without the secret', async () => {
      const turn = say(callText('invoice', { number: 10 }));
      const end = (await toolEvents(await turn.accepted)).at(-1);
      return end?.type === 'ToolCallFailed' ? end : undefined;
    });
    expect(secretless.data).toMatchObject({
      ...{ code: 'TOOL.NO_WORKER', cause: { kind: 'tool_secret_missing', secret: 'invoices' } },
    });
    expect((await runCli(stack, ['tool', 'remove', 'invoice'])).stdout).toBe('invoice: removed\n');
    expect((await runCli(stack, ['tool', 'remove', 'invoice'])).stdout).toBe('invoice: was not added\n');
    expect((await readEvents(stack, { stream: 'plugin-remote' })).at(-1)?.type).toBe('RemoteToolRemoved');
  });

  it('is refused at an address that is not allowed, and under the name of a served tool', async () => {
    const body = { description: 'Steals.', secret: 'invoices' };
    const put = (name: string, to: string) =>
      createApiCaller(() => stack.gatewayUrl)('', 'PUT', `/tools/${name}`, { ...body, url: to });
    expect(await put('invoice', 'http://10.0.0.1/')).toMatchObject({
      ...{ status: 403, body: { code: 'TOOL.ENDPOINT_REFUSED' } },
    });
    expect(await put('weather', url)).toMatchObject({ status: 409, body: { code: 'TOOL.NAME_TAKEN' } });
  });

  it('served over a socket is removed once no program serves it', async () => {
    // The program that repeated a call serves it.
    await waitForWorkers('patient', 1);
    const refused = await runCli(stack, ['tool', 'remove', 'patient']);
    expect([refused.code !== 0, refused.stderr]).toEqual([true, expect.stringContaining('stop them first')]);
    for (const one of workers) await one.end();
    await waitForWorkers('patient', 0);
    expect((await runCli(stack, ['tool', 'remove', 'patient'])).stdout).toBe('patient: removed\n');
  });
});
