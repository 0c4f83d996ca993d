import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { contextFrom, runWithContext } from '@antiphon/observability';
import { until } from '@antiphon/testing';
import { cells, residentMb, startSandbox } from './testing/sandbox.fixture.spec.js';
import type { TestSandbox } from './testing/sandbox.fixture.spec.js';

jest.setTimeout(60_000);

const TIMEOUT_MS = 400;
const MEMORY_MB = 16;
const onLinux = process.platform === 'linux' ? it : it.skip;

// Runs hostile modules in real cells. After each, the next call must succeed.
describe('hostile plug-ins', () => {
  let box: TestSandbox;

  beforeAll(async () => {
    box = await startSandbox(
      [
        ...[
          'hello',
          'loop',
          'start-loop',
          'start-trap',
          'memory-grow',
          'memory-fill',
          'memory-huge',
          'table-grow',
        ],
        ...[
          'recursion',
          'trap',
          'import-unknown',
          'import-wasi',
          'import-http',
          'output-flood',
          'output-flood-caught',
          'output-null',
          'output-wild',
        ],
        ...[
          'not-json',
          'log-flood',
          'log-forever',
          'config-proto',
          'says-key',
          'memo',
          'sets-error',
          'status',
          'aborts',
        ],
        ...['no-export', 'bad-describe', 'describe-loop', 'not-wasm', 'memory-4gib', 'table-fill'],
        ...['exit', 'exit-caught', 'import-clock', 'import-random', 'import-store'],
      ],
      { timeoutMs: TIMEOUT_MS, memoryMb: MEMORY_MB },
    );
  });

  afterEach(async () => {
    expect(await box.call('hello')).toMatchObject({ outcome: 'completed', content: 'hello', isError: false });
  });

  afterAll(async () => {
    await box.close();
  });

  describe('refused at load', () => {
    it.each([
      ['not-wasm', /bad magic/],
      ['start-loop', /instantiate timeout/],
      ['start-trap', /instantiate failed: unreachable/],
      ['memory-huge', /65536 .*over the limit of 256 \(memory_mb = 16\)/],
      ['import-unknown', /import env\.system \(function\) not granted/],
      ['import-wasi', /WASI is disabled/],
      ['import-clock', /clock_ms not granted: the plug-in has no capability clock/],
      ['import-random', /random_bytes not granted: the plug-in has no capability random/],
      ['import-store', /store_get not granted: the plug-in has no capability store:NAME/],
      ['import-http', /http_request not granted: the plug-in has no capability/],
      ['no-export', /handle_tool_call missing/],
      ['bad-describe', /describe\(\) did not answer a JSON object/],
      ['describe-loop', /describe\(\) timeout/],
    ])('%s is listed as rejected', async (name, reason) => {
      expect(box.view(name)).toMatchObject({
        status: 'rejected',
        tools: [],
        reason: expect.stringMatching(reason),
      });
      expect(box.tools.map((tool) => tool.name)).not.toContain(name);
      const reply = await box.call(name);
      expect(reply).toMatchObject({ outcome: 'failed', code: 'TOOL.UNKNOWN' });
    });
  });

  describe('failing their own call', () => {
    it.each([
      ['loop', 'TOOL.TIMEOUT', `within ${TIMEOUT_MS} ms`],
      ['memory-grow', 'TOOL.MEMORY', 'memory_limit'],
      ['memory-4gib', 'TOOL.MEMORY', 'memory_limit'],
      ['table-fill', 'TOOL.TRAP', 'table'],
      ['exit', 'TOOL.TRAP', 'it exited with code 0'],
      ['exit-caught', 'TOOL.TRAP', 'it exited with code 3'],
      ['recursion', 'TOOL.TRAP', 'stack_overflow'],
      ['trap', 'TOOL.TRAP', 'unreachable'],
      ['aborts', 'TOOL.TRAP', 'abort: bad at a.ts:7:9'],
      ['output-flood', 'TOOL.OUTPUT', 'output_limit'],
      ['output-flood-caught', 'TOOL.OUTPUT', 'output_limit'],
      ['output-null', 'TOOL.OUTPUT', 'lies in no block'],
      ['output-wild', 'TOOL.OUTPUT', 'lies in no block'],
      ['not-json', 'TOOL.OUTPUT', 'invalid_output: 3 bytes that are not UTF-8, base64 //4A'],
      ['log-forever', 'TOOL.TIMEOUT', 'timeout'],
    ])('%s fails with %s', async (name, code, text) => {
      const reply = await box.call(name);
      expect(reply).toMatchObject({ outcome: 'failed', code, message: expect.stringContaining(text) });
      expect(reply.durationMs).toBeLessThan(TIMEOUT_MS + 500);
    });

    it.each([
      ['table-grow', 'status -1'],
      ['status', 'status 3'],
      ['sets-error', 'broken'],
    ])('%s returns an error of its own', async (name, content) => {
      const reply = await box.call(name);
      expect(reply).toMatchObject({
        outcome: 'completed',
        isError: true,
        content: expect.stringContaining(content),
      });
    });
  });

  it('config_get returns no property of a prototype', async () =>
    expect(await box.call('config-proto')).toMatchObject({ outcome: 'completed', isError: false }));

  it('config_get returns the idempotency key of the call', async () => {
    const callId = '0192f0c1-7a2b-7c3d-8e4f-000000000001';
    expect(await box.call('says-key', {}, { callId })).toMatchObject({ content: callId });
  });

  it('each call starts without state of earlier calls', async () => {
    for (let i = 0; i < 6; i++) expect(await box.call('memo')).toMatchObject({ content: 'fresh' });
  });

  it('logging is rate limited and suppressed lines are counted', async () => {
    const before = box.log.length;
    const context = contextFrom('agent', { correlationId: 'req-1' });
    const reply = await runWithContext(context, () => box.call('log-flood'));
    expect(reply).toMatchObject({ outcome: 'completed' });
    const lines = box.log.slice(before).filter((entry) => entry['plugin'] === 'log-flood');
    expect(lines.filter((entry) => 'line' in entry).length).toBeLessThanOrEqual(20);
    expect(lines).toContainEqual(expect.objectContaining({ suppressed: 180 }));
    expect(new Set(lines.map((entry) => entry['correlationId']))).toEqual(new Set(['req-1']));
  });

  onLinux('cells stay within their memory limit', async () => {
    await until(() => box.sandbox.pool.stats().cells === 2); // a starting cell has little memory
    const idle = Math.max(...cells().map((pid) => residentMb(pid)));
    for (let i = 0; i < 20; i++)
      for (const name of ['memory-fill', 'memory-4gib', 'table-fill', 'output-flood']) await box.call(name);
    // Calls may have replaced a cell, so the peaks of the current cells count.
    const peaks = cells().map((pid) => residentMb(pid, 'peak'));
    expect(Math.max(...peaks) - idle).toBeLessThan(MEMORY_MB + 32);
  });
});
