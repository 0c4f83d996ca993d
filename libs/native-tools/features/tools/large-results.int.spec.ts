import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { createHash } from 'node:crypto';
import type { SessionExport } from '@antiphon/contracts/log';
import { BlobStore } from '@antiphon/database';
import { estimatePrompt } from '@antiphon/conversation-domain';
import { clipMiddle, leftOutNote } from '@antiphon/kernel';
import { replayRecord } from '@antiphon/orchestration-features/replay';
import type { ModelRequest } from '@antiphon/providers-domain';
import { createTestDatabase } from '@antiphon/testing';
import {
  WORKSPACE,
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { echoTool } from '@antiphon/agent-features/testing/responders';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(60_000);

/** Of `testConfig`: the default of `[memory] context_tokens`. */
const CONTEXT_TOKENS = testConfig().memory.contextTokens ?? 0;
const PATIENCE_MS = 40_000;
const MIB = 1_024 * 1_024;
const NEEDLE = 'NEEDLE=grüße-4711';
/** 50 MiB of one line, with a needle in its middle. */
const hay = (): Buffer => {
  const bytes = Buffer.alloc(50 * MIB, 'the hay of a large result ');
  bytes.write(NEEDLE, 25 * MIB + 3);
  return bytes;
};
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

const resultOf = ({ messages }: ModelRequest): string => {
  const last = messages.at(-1);
  return last?.role === 'tool' ? (last.results[0]?.content ?? '') : '';
};
const idIn = (text: string): string => /result "([0-9a-f-]{36})"/.exec(text)?.[1] ?? '';

describe('A large result', () => {
  let world: AgentWorld;
  let agent: TestProcess;
  let prompts: ModelRequest[];
  const config = testConfig({ tools: ['fetch', 'once'], maxIterations: 10 });
  beforeAll(async () => {
    world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
    world.responders.tools = [echoTool(true, 'fetch'), echoTool(false, 'once')];
  }, 60_000);
  beforeEach(() => {
    agent = world.process({ config });
    prompts = [];
  });
  afterEach(() => world.responders.held.clear());
  afterAll(() => world.close(), 30_000);

  /** The sandbox has a result, of which its reply has the head and tail. */
  const holds = (bytes: Buffer, isHeld = true): void => {
    world.responders.tool = async ({ callId }) => {
      if (isHeld) world.responders.held.set(callId, bytes);
      const content = clipMiddle(bytes.toString(), 32_000, leftOutNote(callId, bytes.length));
      const large = { digest: sha256(bytes), size: bytes.length, holder: 'holder' };
      return { outcome: 'completed', content, isError: false, moduleDigest: 'd', durationMs: 1, large };
    };
  };
  const plays = (...steps: ((request: ModelRequest) => ReturnType<typeof says>)[]): void => {
    world.model.reply = async (request) => {
      prompts.push(request);
      return steps[prompts.length - 1]?.(request) ?? says('too late');
    };
  };

  it('of 50 MiB is stored whole, and its needle is found within the limit of the context', async () => {
    const bytes = hay();
    holds(bytes);
    plays(
      () => asksFor({ name: 'fetch', input: {} }),
      (request) =>
        asksFor({ name: 'search_result', input: { result: idIn(resultOf(request)), text: 'NEEDLE=' } }),
      (request) => {
        const at = Number(/byte (\d+)/.exec(resultOf(request))?.[1]);
        return asksFor({ name: 'read_result', input: { result: sha256(bytes), from_byte: at, bytes: 19 } });
      },
      (request) => says(resultOf(request).split('\n')[1] ?? ''),
    );
    const { sessionId } = await submitTo(agent, { address: newAddress('main') });
    const events = await world.ended(sessionId, 1, PATIENCE_MS);
    const completed = events.filter(({ type }) => type === 'ToolCallCompleted').map(({ data }) => data);
    expect(completed).toHaveLength(3);
    expect(completed[0]).toMatchObject({ stored: { digest: sha256(bytes), size: bytes.length } });
    expect(String(completed[0]?.['content']).length).toBeLessThan(33_000);
    expect(
      events.find(({ type, data }) => type === 'ModelCallCompleted' && data['text'] !== '')?.data['text'],
    ).toBe(NEEDLE);
    for (const prompt of prompts) expect(estimatePrompt(prompt)).toBeLessThanOrEqual(CONTEXT_TOKENS);
    expect(prompts[0]?.tools.map(({ name }) => name)).toEqual(['fetch', 'once']);
    expect(prompts[1]?.tools.map(({ name }) => name)).toEqual([
      'fetch',
      'once',
      'read_result',
      'search_result',
    ]);
    const blobs = new BlobStore(world.pool);
    expect(sha256(await blobs.read(WORKSPACE, sha256(bytes)))).toBe(sha256(bytes));
    // The fact cites the bytes: no sweep deletes them.
    await world.pool.query(`update file_blobs set written_at = now() - interval '2 days'`);
    await blobs.sweep(new Date().toISOString());
    expect((await blobs.sizes(WORKSPACE, [sha256(bytes)])).get(sha256(bytes))).toBe(bytes.length);
    const all = await world.events(sessionId);
    const head = { version: all.length, hash: all.at(-1)?.hash };
    const record = {
      kind: 'antiphon.session',
      format: 1,
      workspace: WORKSPACE,
      sessionId,
      head,
      events: all,
    };
    expect(replayRecord(record as unknown as SessionExport, { limit: 1 })).toMatchObject({
      ok: true,
      divergences: [],
    });
  });

  it('is read by each byte: in parts of whole characters, and in lines', async () => {
    const text = Array.from({ length: 60_000 }, (_, line) => `line ${line + 1} grüße 🌍`).join('\n');
    const bytes = Buffer.from(text);
    holds(bytes);
    let read = '';
    let result = '';
    const next = (request: ModelRequest): ReturnType<typeof says> => {
      result ||= idIn(resultOf(request));
      const [header = '{}', ...rest] = resultOf(request).split('\n');
      const { next: from = 0 } = prompts.length > 2 ? (JSON.parse(header) as { next?: number }) : {};
      read += prompts.length > 2 ? rest.join('\n') : '';
      return prompts.length > 6
        ? says('read')
        : asksFor({ name: 'read_result', input: { result, from_byte: from, bytes: 1_001 } });
    };
    plays(() => asksFor({ name: 'fetch', input: {} }), next, next, next, next, next, next);
    const { sessionId } = await submitTo(agent, { address: newAddress('main') });
    await world.ended(sessionId, 1, PATIENCE_MS);
    expect(read.length).toBeGreaterThan(2_500);
    expect(text.startsWith(read)).toBe(true);

    prompts = [];
    plays(
      () => asksFor({ name: 'read_result', input: { result, from_line: 59_999, lines: 5 } }),
      () => says('read'),
    );
    await submitTo(agent, { sessionId }, 'and the end?');
    await world.ended(sessionId, 2, PATIENCE_MS);
    expect(resultOf(prompts[1] as ModelRequest)).toContain('60000\tline 60000 grüße 🌍');
  });

  it('that is gone before it is stored is an unknown outcome, or a further try of an idempotent tool', async () => {
    holds(Buffer.alloc(MIB, 'x'), false);
    plays(
      () => asksFor({ name: 'once', input: {} }),
      () => says('done'),
    );
    const { sessionId } = await submitTo(agent, { address: newAddress('main') });
    const types = (await world.ended(sessionId, 1, PATIENCE_MS)).map(({ type }) => type);
    expect(types).toContain('ToolCallUnknown');
    expect(types).not.toContain('ToolCallCompleted');
  });

  it('of another conversation is not read', async () => {
    holds(Buffer.alloc(MIB, 'secret '));
    plays(
      () => asksFor({ name: 'fetch', input: {} }),
      () => says('done'),
    );
    const { sessionId: other } = await submitTo(agent, { address: newAddress('main') });
    const events = await world.ended(other, 1, PATIENCE_MS);
    const result = String(events.find(({ type }) => type === 'ToolCallCompleted')?.data['callId']);
    prompts = [];
    plays(
      () =>
        asksFor(
          { name: 'read_result', input: { result } },
          { name: 'search_result', input: { result, text: 'secret' } },
        ),
      () => says('done'),
    );
    const { sessionId } = await submitTo(agent, { address: newAddress('main') });
    const failed = (await world.ended(sessionId, 1, PATIENCE_MS)).filter(
      ({ type }) => type === 'ToolCallFailed',
    );
    expect(failed.map(({ data }) => data['code'])).toEqual(['TOOL.NO_RESULT', 'TOOL.NO_RESULT']);
  });
});
