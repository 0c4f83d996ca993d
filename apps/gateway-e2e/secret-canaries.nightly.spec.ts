import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createPool } from '@antiphon/database';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import { startStack, type TestStack } from '@antiphon/testing/stack';
import { startOtlpReceiver, type OtlpReceiver } from '@antiphon/testing/telemetry';
import { CANARY_KEY, readEvents, runCli, twoVendorConfig } from './stack-under-test.js';

jest.setTimeout(180_000);

/** The part of a key that no other text contains. */
const canaryOf = (key: string): string => key.slice('sk-'.length);
const CANARY = canaryOf(CANARY_KEY);
const STORED_KEY = 'sk-canary-stored-5f0e1d2c3b4a-71c9';
const URL_KEY = 'sk-canary-query-8e1f2a3b4c5d-60fa';
const SERVICES = ['gateway', 'agent', 'memory', 'metering', 'sandbox'] as const;
const folder = mkdtempSync(join(tmpdir(), 'antiphon-canaries-'));

let receiver: OtlpReceiver;
let mock: MockModel;
let stack: TestStack;
let client: SocketClient;
let retried = 0;
/** Key that the provider echoes. */
let echoed = CANARY_KEY;

/** Splits a text into pieces of `size` characters. */
const inPieces = (text: string, size: number): string[] =>
  Array.from({ length: Math.ceil(text.length / size) }, (_, n) => text.slice(n * size, (n + 1) * size));

/** A provider that takes its key in the query of its address. */
const queryConfig = (url: string): string => `
[[providers]]
name = "by-query"
kind = "openai-compatible"
base_url = "${url}/v1?key=${URL_KEY}"

[[agents]]
id = "query"
provider = "by-query"
model = "m"
tools = ["echo"]
`;

const turn = async (agent: string, content: string): Promise<string> => {
  const params = { channel: 'test', account: 'e2e', peer: content, agent, content };
  return JSON.stringify(await client.stream('chat.send', params).done());
};

beforeAll(async () => {
  receiver = await startOtlpReceiver();
  // A provider that echoes its key wherever it can.
  mock = await startMockModel(({ user, toolResults }) => {
    if (user === 'retry' && retried++ % 2 === 0)
      return { status: 503, body: { error: { message: `busy: ${echoed}` } } };
    if (user === 'error') return { status: 401, body: { error: { message: `invalid key ${echoed}` } } };
    if (user === 'tool' && toolResults.length === 0)
      return { tools: [{ id: echoed, name: 'echo', input: { key: echoed, [echoed]: 1 } }] };
    if (user === 'unknown tool' && toolResults.length === 0)
      return { tools: [{ id: 'call_1', name: echoed, input: {} }] };
    const text = `your key is ${echoed}, I think`;
    return { text: inPieces(text, user === 'pieces' ? 3 : 1_000), thought: inPieces(text, 5) };
  });
  stack = await startStack({
    config: `${twoVendorConfig(mock.url)}${queryConfig(mock.url)}`,
    env: {
      E2E_PROVIDER_KEY: CANARY_KEY,
      ANTIPHON_LOG_LEVEL: 'debug',
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '100',
      OTEL_METRIC_EXPORT_INTERVAL: '500',
    },
  });
  client = await connectClient(stack.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await mock?.close();
  await receiver?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Returns the files below a folder. */
const filesOf = (path: string): string[] =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

/** Reads a writable mapping of a process, as far as it can be read. */
const readMapping = (memory: number, line: string): Buffer => {
  const [, from = '', to = ''] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? [];
  if (from === '') return Buffer.alloc(0);
  const start = parseInt(from, 16);
  const buffer = Buffer.alloc(Math.min(parseInt(to, 16) - start, 256 * 1024 * 1024));
  try {
    return buffer.subarray(0, readSync(memory, buffer, 0, buffer.length, start));
  } catch {
    return Buffer.alloc(0); // a mapping without readable pages
  }
};

/** Returns whether the writable memory of a process contains a text. */
const memoryHas = (pid: number, text: string): boolean => {
  const memory = openSync(`/proc/${pid}/mem`, 'r');
  try {
    const lines = readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n');
    return lines.some((line) => readMapping(memory, line).includes(text));
  } finally {
    closeSync(memory);
  }
};

const CONTENTS = ['whole', 'pieces', 'tool', 'unknown tool', 'retry', 'error'];
const expectNoRow = async (canary: string): Promise<void> => {
  expect(JSON.stringify(await readEvents(stack))).not.toContain(canary);
  const pool = createPool({ url: stack.databaseUrl, applicationName: 'spec', max: 1 });
  try {
    const { rows: tables } = await pool.query<{ name: string }>(
      `select quote_ident(table_name) as name from information_schema.tables
       where table_schema = 'public' and table_type = 'BASE TABLE'`,
    );
    await pool.query(`select set_config('antiphon.workspace', '*', false)`);
    for (const { name } of tables) {
      const sql = `select count(*)::int as hits from ${name} t where t::text like '%' || $1 || '%'`;
      const { rows } = await pool.query<{ hits: number }>(sql, [canary]);
      expect([name, rows[0]?.hits]).toEqual([name, 0]);
    }
  } finally {
    await pool.end();
  }
};
const expectNoLine = (canary: string): void => {
  for (const name of filesOf(stack.stackJson().logs))
    expect([name, readFileSync(name, 'utf8').includes(canary)]).toEqual([name, false]);
  expect(receiver.bodies.length).toBeGreaterThan(0);
  expect(receiver.bodies.join('\n')).not.toContain(canary);
};
const expectNoBackup = async (canary: string, backup: string): Promise<void> => {
  expect((await runCli(stack, ['backup', backup])).code).toBe(0);
  for (const name of filesOf(backup))
    expect([name, readFileSync(name).includes(canary)]).toEqual([name, false]);
};
/** Finds a text in the environment and the memory of each process of a service. */
const findIn = (name: (typeof SERVICES)[number], canary: string) =>
  stack.stackJson().services[name].map(({ pid }) => ({
    name,
    environment: readFileSync(`/proc/${pid}/environ`).includes(canary),
    memory: memoryHas(Number(pid), canary),
  }));

describe('the key of a provider that echoes it', () => {
  const frames: string[] = [];

  it.each(['claude', 'gpt'])('reaches no client of %s', async (agent) => {
    for (const content of CONTENTS) frames.push(await turn(agent, content));
    expect(mock.calls.length).toBeGreaterThan(0);
    expect(frames.join('\n')).not.toContain(CANARY);
    expect(frames.join('\n')).toContain('[redacted]');
  });

  it('is in no event and in no row of the database', () => expectNoRow(CANARY));

  it('is in no log line and no span', () => expectNoLine(CANARY));

  it('is in no backup', () => expectNoBackup(CANARY, join(folder, 'one')));

  it('is in the environment and the memory of the agent only', () => {
    for (const name of SERVICES)
      for (const found of findIn(name, CANARY))
        expect(found).toEqual({ name, environment: name === 'agent', memory: name === 'agent' });
  });
});

// @shows secret-003
describe('the key in the address of a provider that echoes it', () => {
  const canary = canaryOf(URL_KEY);

  it('is sent with each call, and reaches no client', async () => {
    [echoed, retried] = [URL_KEY, 0];
    const frames: string[] = [];
    for (const content of CONTENTS) frames.push(await turn('query', content));
    expect(mock.calls.at(-1)?.seen.path).toBe(`/v1/chat/completions?key=${URL_KEY}`);
    expect(frames.join('\n')).not.toContain(canary);
    expect(frames.join('\n')).toContain('[redacted]');
    expect((await runCli(stack, ['status', '--json'])).stdout).not.toContain(canary);
  });

  it('is in no event and in no row of the database', () => expectNoRow(canary));

  it('is in no log line and no span', () => expectNoLine(canary));
});

describe('the stored key of a provider that echoes it', () => {
  const canary = canaryOf(STORED_KEY);

  it('is used from the next call on, and reaches no client', async () => {
    const file = join(folder, 'key');
    writeFileSync(file, STORED_KEY, { mode: 0o600 });
    expect(await runCli(stack, ['credential', 'set', 'openai', '--file', file])).toMatchObject({ code: 0 });
    echoed = STORED_KEY;
    const frames: string[] = [];
    for (const content of CONTENTS) frames.push(await turn('gpt', content));
    expect(mock.calls.at(-1)?.seen.headers.authorization).toBe(`Bearer ${STORED_KEY}`);
    expect(frames.join('\n')).not.toContain(canary);
    expect(frames.join('\n')).toContain('[redacted]');
    expect((await runCli(stack, ['credential', 'list', '--json'])).stdout).not.toContain(canary);
  });

  it('is in no event and in no row of the database', () => expectNoRow(canary));

  it('is in no log line and no span', () => expectNoLine(canary));

  it('is in no backup', () => expectNoBackup(canary, join(folder, 'two')));

  it('is in no environment, and of the services that have not received it in no memory', () => {
    for (const name of SERVICES)
      for (const found of findIn(name, canary)) {
        expect([name, found.environment]).toEqual([name, false]);
        // The gateway has forwarded the request that set it.
        if (name !== 'agent' && name !== 'gateway') expect([name, found.memory]).toEqual([name, false]);
      }
    expect(findIn('agent', canary)[0]?.memory).toBe(true);
  });
});

describe('the debug logs of this run', () => {
  // @shows Q5
  it('have no error that the services did not expect, and no stack of a crash', () => {
    const lines = filesOf(stack.stackJson().logs).flatMap((name) => readFileSync(name, 'utf8').split('\n'));
    expect(lines.filter((line) => line.includes('"level":"debug"')).length).toBeGreaterThan(100);
    // The receiver of telemetry is this process, which scans memory without reading its sockets.
    const expected = /telemetry not exported|the database system is starting up/;
    const unexpected = lines
      .filter((line) => !expected.test(line))
      .filter((line) =>
        /"level":"(?:error|fatal)"|INTERNAL\.UNEXPECTED|"kind":"bug"|uncaught|unhandled|PANIC:|\bFATAL:/i.test(
          line,
        ),
      );
    expect(unexpected).toEqual([]);
  });
});
