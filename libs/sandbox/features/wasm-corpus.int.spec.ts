import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { validateModule } from '@antiphon/sandbox-domain';
import type { DialTarget } from './http/fetch-page.js';
import { MODULES } from './testing/modules.fixture.spec.js';
import { startSandbox } from './testing/sandbox.fixture.spec.js';
import type { TestSandbox } from './testing/sandbox.fixture.spec.js';

jest.setTimeout(60_000);

const TIMEOUT_MS = 400;
const moduleOf = (name: string): Uint8Array => MODULES[name] ?? new Uint8Array(0);
const HEADER = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];
const LIMITS = { kind: 'tool', memoryMb: 16, http: false } as const;

/** A function section of 1,000,000 functions of the type 0: () -> (). */
const manyFunctions = (): Uint8Array => {
  const start = [...HEADER, 1, 4, 1, 0x60, 0, 0, 3, 0xc3, 0x84, 0x3d, 0xc0, 0x84, 0x3d];
  const module = new Uint8Array(start.length + 1_000_000);
  module.set(start);
  return module;
};

/** Cases of the corpus that are bytes alone, by id: the validator refuses each. */
const BYTES: Readonly<Record<string, readonly [Uint8Array, RegExp]>> = {
  'wasm-002-truncated': [moduleOf('hello').subarray(0, 100), /./],
  'wasm-003-bad-version': [Uint8Array.from([0x00, 0x61, 0x73, 0x6d, 2, 0, 0, 0]), /version/],
  'wasm-005-many-functions': [manyFunctions(), /1000000 entries/],
  'wasm-017-import-shared-memory': [
    // (import "env" "memory" (memory 1 65536 shared))
    Uint8Array.from([
      ...HEADER,
      2,
      18,
      1,
      3,
      ...Buffer.from('env'),
      6,
      ...Buffer.from('memory'),
      2,
      3,
      1,
      0x80,
      0x80,
      4,
    ]),
    /shared memory/,
  ],
};

/** Cases that a sandbox refuses when it starts: the module of the fixture, and the reason. */
const REFUSED = {
  'wasm-001-not-wasm': ['not-wasm', /bad magic/],
  'wasm-007-start-loop': ['start-loop', /instantiate timeout/],
  'wasm-009-memory-initial-huge': ['memory-huge', /65536 .*over the limit/],
  'wasm-015-import-unknown': ['import-unknown', /env\.system \(function\) not granted/],
  'wasm-016-import-wasi': ['import-wasi', /WASI is disabled/],
  'wasm-018-export-missing': ['no-export', /handle_tool_call missing/],
  'wasm-033-timing-spectre': ['import-clock', /the plug-in has no capability clock/],
} as const;

/** Cases that fail their own call: the module, the code, and the message. */
const FAILED = {
  'wasm-006-infinite-loop': ['loop', 'TOOL.TIMEOUT', `within ${TIMEOUT_MS} ms`],
  'wasm-008-memory-grow': ['memory-grow', 'TOOL.MEMORY', 'memory_limit'],
  'wasm-012-unbounded-recursion': ['recursion', 'TOOL.TRAP', 'stack_overflow'],
  'wasm-013-trap-unreachable': ['trap', 'TOOL.TRAP', 'unreachable'],
  'wasm-020-output-flood': ['output-flood', 'TOOL.OUTPUT', 'output_limit'],
  'wasm-021-output-not-json': [
    'not-json',
    'TOOL.OUTPUT',
    'invalid_output: 3 bytes that are not UTF-8, base64 //4A',
  ],
} as const;

let server: Server;
let box: TestSandbox;
let web: TestSandbox;
let dialled: DialTarget[] = [];
let resolved: string[] = [];
let asked = 0;

beforeAll(async () => {
  server = createServer((_request, response) => {
    asked += 1;
    response
      .writeHead(302, { location: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` })
      .end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const names = [...Object.values(REFUSED), ...Object.values(FAILED)].map(([name]) => name);
  const others = ['hello', 'table-grow', 'log-flood', 'config-proto', 'claims'];
  box = await startSandbox([...names, ...others], { timeoutMs: TIMEOUT_MS });
  const resolve = async (host: string) => {
    resolved.push(host);
    return ['93.184.216.34'];
  };
  const dial = (target: DialTarget) => {
    dialled.push(target);
    return connect((server.address() as AddressInfo).port, '127.0.0.1');
  };
  const capabilities = ['http:api.example.com'];
  web = await startSandbox(['requests'], { capabilities }, { egress: { resolve, dial } });
});
afterAll(async () => {
  await Promise.all([box?.close(), web?.close()]);
  server.close();
});

const callsAgain = async () =>
  expect(await box.call('hello')).toMatchObject({ outcome: 'completed', content: 'hello' });

describe('a module of the hostile corpus', () => {
  it.each(Object.entries(BYTES))('%s is refused by its bytes', (_id, [module, reason]) => {
    const startedAt = performance.now();
    const verdict = validateModule(module, LIMITS);
    expect(verdict).toMatchObject({ accepted: false, reason: expect.stringMatching(reason) });
    // It runs in the service, whose event loop may not stop for longer.
    expect(performance.now() - startedAt).toBeLessThan(100);
  });

  it.each(Object.entries(REFUSED))('%s is refused when it is loaded', async (_id, [name, reason]) => {
    expect(box.view(name)).toMatchObject({ status: 'rejected', reason: expect.stringMatching(reason) });
    expect(await box.call(name)).toMatchObject({ outcome: 'failed', code: 'TOOL.UNKNOWN' });
  });

  it.each(Object.entries(FAILED))('%s fails its own call alone', async (_id, [name, code, text]) => {
    const reply = await box.call(name);
    expect(reply).toMatchObject({ outcome: 'failed', code, message: expect.stringContaining(text) });
    expect(reply.durationMs).toBeLessThan(TIMEOUT_MS + 500);
    await callsAgain();
  });

  it('wasm-010-table-grow gets no table over its limit', async () => {
    expect(await box.call('table-grow')).toMatchObject({
      isError: true,
      content: expect.stringContaining('-1'),
    });
    await callsAgain();
  });

  it('wasm-023-output-claims-isError-false sets its content alone', async () => {
    const reply = await box.call('claims');
    expect(reply).toMatchObject({ outcome: 'completed', isError: false, content: 'mine' });
    expect(Object.keys(reply).sort()).toEqual([
      'content',
      'durationMs',
      'isError',
      'moduleDigest',
      'outcome',
    ]);
    expect(reply.durationMs).toBeGreaterThanOrEqual(0);
  });

  it('wasm-024-log-flood leaves 20 lines and the number of the others', async () => {
    const before = box.log.length;
    await box.call('log-flood');
    const lines = box.log.slice(before).filter((entry) => entry['plugin'] === 'log-flood');
    expect(lines.filter((entry) => 'line' in entry)).toHaveLength(20);
    expect(lines).toContainEqual(expect.objectContaining({ suppressed: 180 }));
  });

  it('wasm-026-config-get-proto finds no property of a prototype', async () =>
    expect(await box.call('config-proto')).toMatchObject({ outcome: 'completed', isError: false }));

  it('wasm-027-http-not-allowed looks no name up and connects to nothing', async () => {
    [dialled, resolved] = [[], []];
    expect(await web.call('requests', { url: 'https://evil.example/' })).toMatchObject({
      ...{ outcome: 'failed', code: 'TOOL.DENIED' },
      message: expect.stringContaining('evil.example is not granted'),
    });
    expect([dialled, resolved]).toEqual([[], []]);
  });

  it('wasm-028-http-redirect-escape follows no redirect to this machine', async () => {
    [dialled, asked] = [[], 0];
    expect(await web.call('requests', { url: 'http://api.example.com/' })).toMatchObject({
      ...{ outcome: 'failed', code: 'TOOL.DENIED' },
      message: expect.stringContaining('127.0.0.1 is not granted'),
    });
    expect([dialled.length, asked]).toEqual([1, 1]);
  });
});
