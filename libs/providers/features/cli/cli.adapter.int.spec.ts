import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ModelFailure } from '@antiphon/providers-domain';
import type { ModelRequest } from '@antiphon/providers-domain';
import type { ProviderConfig } from '@antiphon/config';
import { until } from '@antiphon/testing/waits';
import { FIXED_PROVIDER_LIMITS } from '../transport/provider-call.js';
import type { ProviderLimits } from '../transport/provider-call.js';
import { createCliAdapter } from './cli.adapter.js';

type Program = NonNullable<ProviderConfig['program']>;

const LIMITS: ProviderLimits = {
  ...FIXED_PROVIDER_LIMITS,
  ...{ connectMs: 20_000, firstByteMs: 20_000, idleMs: 20_000, totalMs: 20_000, retryTimeouts: false },
  ownerOf: () => 'provider local',
};

const request = (more: Partial<ModelRequest> = {}): ModelRequest => ({
  ...{ provider: 'local', model: 'sonnet', system: 'Be brief.', turnStart: 0, tools: [] },
  messages: [{ role: 'user', text: 'What is 2 + 2?' }],
  ...{ maxOutputTokens: 1_000, signal: new AbortController().signal, streaming: true },
  ...more,
});

const line = (value: object): string => JSON.stringify(value);

/** Output of each program for the answer "It is 4.", in its documented format. */
const GOOD: Readonly<Record<Program, readonly string[]>> = {
  claude: [
    line({ type: 'system', subtype: 'init', session_id: 's', model: 'claude-sonnet-4-5', tools: [] }),
    line({
      type: 'stream_event',
      event: { type: 'content_block_delta', delta: { type: 'thinking_delta', thinking: 'sum' } },
    }),
    line({
      type: 'stream_event',
      event: { type: 'content_block_delta', delta: { type: 'text_delta', text: 'It is ' } },
    }),
    line({
      type: 'stream_event',
      event: { type: 'content_block_delta', delta: { type: 'text_delta', text: '4.' } },
    }),
    line({
      type: 'assistant',
      message: { model: 'claude-sonnet-4-5', content: [{ type: 'text', text: 'It is 4.' }] },
    }),
    line({
      ...{ type: 'result', subtype: 'success', is_error: false, result: 'It is 4.', total_cost_usd: 0.01 },
      usage: {
        input_tokens: 10,
        cache_creation_input_tokens: 5,
        cache_read_input_tokens: 100,
        output_tokens: 7,
      },
    }),
  ],
  gemini: [
    line({ type: 'init', session_id: 's', model: 'gemini-2.5-pro' }),
    line({ type: 'message', role: 'user', content: 'What is 2 + 2?' }),
    line({ type: 'message', role: 'assistant', content: 'It is ', delta: true }),
    line({ type: 'message', role: 'assistant', content: '4.', delta: true }),
    line({
      type: 'result',
      status: 'success',
      stats: { total_tokens: 122, input_tokens: 115, output_tokens: 7, cached: 100 },
    }),
  ],
  codex: [
    line({ type: 'thread.started', thread_id: 't' }),
    line({ type: 'turn.started' }),
    line({ type: 'item.completed', item: { id: '0', type: 'reasoning', text: 'sum' } }),
    line({ type: 'item.completed', item: { id: '1', type: 'agent_message', text: 'It is 4.' } }),
    line({
      type: 'turn.completed',
      usage: { input_tokens: 115, cached_input_tokens: 100, output_tokens: 7 },
    }),
  ],
};

/** A beginning of an answer, without its end. */
const BEGUN = GOOD.claude.slice(0, 3);

describe('A provider of kind cli', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'antiphon-fake-cli-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  let count = 0;
  /** Writes a fake program. It records its arguments, input, environment and folder. */
  const fake = (body: string): string => {
    const path = join(folder, `program-${++count}`);
    writeFileSync(
      path,
      `#!${process.execPath}
const { readFileSync, writeFileSync } = require('node:fs');
const input = readFileSync(0, 'utf8');
writeFileSync(${JSON.stringify(`${path}.seen`)}, JSON.stringify({ args: process.argv.slice(2), input, env: process.env, cwd: process.cwd(), pid: process.pid }));
const say = (text) => process.stdout.write(text + '\\n');
${body}
`,
    );
    chmodSync(path, 0o755);
    return path;
  };
  const says = (lines: readonly string[], rest = ''): string =>
    fake(`${lines.map((text) => `say(${JSON.stringify(text)});`).join('\n')}\n${rest}`);
  const seenBy = (command: string) =>
    JSON.parse(readFileSync(`${command}.seen`, 'utf8')) as {
      args: string[];
      input: string;
      env: Record<string, string>;
      cwd: string;
      pid: number;
    };

  const call = async (
    command: string,
    {
      program = 'claude',
      limits = {},
      ...more
    }: Partial<ModelRequest> & { program?: Program; limits?: Partial<ProviderLimits> } = {},
    provider: Partial<ProviderConfig> = {},
  ) => {
    const deltas: string[] = [];
    const adapter = createCliAdapter({
      provider: { name: 'local', kind: 'cli', program, command, ...provider } as ProviderConfig,
      env: { PATH: '/usr/bin:/bin', HOME: '/home/x', SECRET: 'canary-0123456789', OTHER: 'y' },
      limitsOf: () => ({ ...LIMITS, ...limits }),
      redact: (text) => text.replaceAll('canary-0123456789', '…'),
      now: Date.now,
    });
    const sink = { onText: (text: string) => void deltas.push(text), onThought: () => undefined };
    return { answer: await adapter.complete(request(more), sink), deltas };
  };
  const failureOf = async (...args: Parameters<typeof call>): Promise<ModelFailure> => {
    const error: unknown = await call(...args).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(ModelFailure);
    return error as ModelFailure;
  };
  const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}`);

  it.each(['claude', 'gemini', 'codex'] as const)(
    'streams the answer of %s, with its usage',
    async (program) => {
      const command = says(GOOD[program]);
      const { answer, deltas } = await call(command, { program });
      expect(answer).toMatchObject({ text: 'It is 4.', toolCalls: [], finishReason: 'stop' });
      expect(deltas.join('')).toBe('It is 4.');
      expect(answer.usage).toMatchObject({ inputTokens: 115, outputTokens: 7, cacheReadTokens: 100 });
      const { args, input, env, cwd } = seenBy(command);
      expect(args).toContain('sonnet');
      expect(input).toBe('Be brief.\n\nWhat is 2 + 2?');
      expect(
        Object.keys(env)
          .sort()
          .filter((name) => !['PWD', 'OLDPWD', 'SHLVL', '_'].includes(name)),
      ).toEqual([...['CLAUDE_CODE_MAX_OUTPUT_TOKENS', 'PATH']]);
      expect(existsSync(cwd)).toBe(false);
    },
  );

  it('passes the named variables alone, and works in the folder of the provider', async () => {
    const command = says(GOOD.claude);
    await call(command, {}, { passEnv: ['HOME', 'MISSING'], folder });
    const { env, cwd } = seenBy(command);
    expect(env).toMatchObject({ HOME: '/home/x' });
    expect(env).not.toHaveProperty('SECRET');
    expect(cwd).toBe(folder);
    expect(existsSync(folder)).toBe(true);
  });

  it('sends earlier messages and results of tools as text', async () => {
    const command = says(GOOD.codex);
    await call(command, {
      program: 'codex',
      messages: [
        { role: 'user', text: 'hi', context: 'facts' },
        { role: 'assistant', text: '', toolCalls: [{ id: '1', name: 'echo', input: { a: 1 } }] },
        { role: 'tool', results: [{ id: '1', name: 'echo', content: 'one', isError: false }] },
      ],
    });
    expect(seenBy(command).input).toMatch(
      /### User\nfacts\n\nhi\n\n### Assistant\n\[called echo {"a":1}\]\n\n### Tool results\n\[echo\]\none$/,
    );
  });

  it('reads over noise and broken lines, and leaves an unknown usage open', async () => {
    const usage = /"usage":\{[^}]*\},?/;
    const lines = [
      'Loaded cached credentials.',
      '',
      '{"type":',
      '[1,2]',
      ...GOOD.claude.map((text) => text.replace(usage, '"x":1,').replace(',}', '}')),
    ];
    const { answer } = await call(says(lines));
    expect(answer).toMatchObject({ text: 'It is 4.', usage: null });
  });

  it.each([
    [
      'crashes in mid-answer',
      BEGUN,
      'process.stderr.write("boom canary-0123456789"); process.exit(3);',
      'cli_ended',
      true,
    ],
    ['ends without a result', BEGUN, '', 'provider_answer_broken', true],
    ['is killed', BEGUN, 'process.kill(process.pid, "SIGKILL");', 'cli_ended', true],
  ] as const)('fails a call whose program %s', async (_name, lines, rest, kind, retryable) => {
    const failure = await failureOf(says(lines, rest));
    expect(failure).toMatchObject({ why: { kind }, retryable, dispatched: true });
    expect(JSON.stringify(failure)).not.toContain('canary');
  });

  it.each([
    [
      'claude',
      { type: 'result', subtype: 'error_during_execution', is_error: true, result: 'Invalid API key' },
    ],
    [
      'gemini',
      { type: 'result', status: 'error', error: { type: 'auth', message: 'Invalid API key' }, stats: {} },
    ],
    ['codex', { type: 'turn.failed', error: { message: 'Invalid API key' } }],
  ] as const)('fails a call of which %s reports an error', async (program, error) => {
    const failure = await failureOf(says([line(error)], 'process.exit(1);'), { program });
    expect(failure.why).toEqual({ kind: 'cli_refused', provider: 'local', said: 'Invalid API key' });
  });

  it('fails a call of a program that does not exist, as one that was not sent', async () => {
    const failure = await failureOf('/nowhere/claude');
    expect(failure).toMatchObject({ why: { kind: 'cli_not_started' }, dispatched: false, retryable: false });
  });

  it('ends a program that floods its output, and one that writes an endless line', async () => {
    const flood = 'const a = "x".repeat(65536) + "\\n"; const f = () => process.stdout.write(a, f); f();';
    expect(await failureOf(fake(flood))).toMatchObject({ reason: 'provider_protocol', retryable: false });
    const endless = 'const a = "x".repeat(65536); const f = () => process.stdout.write(a, f); f();';
    const command = fake(endless);
    expect(await failureOf(command)).toMatchObject({ reason: 'provider_protocol' });
    await until(() => !isAlive(seenBy(command).pid));
  });

  it('cuts an answer that is longer than was granted', async () => {
    const delta = line({
      type: 'stream_event',
      event: { type: 'content_block_delta', delta: { type: 'text_delta', text: 'x'.repeat(1_000) } },
    });
    const { answer } = await call(
      says(
        Array.from({ length: 50 }, () => delta),
        'setInterval(() => {}, 1000);',
      ),
      { maxOutputTokens: 100 },
    );
    expect(answer).toMatchObject({ finishReason: 'length' });
    expect(answer.text.length).toBeLessThan(5_000);
  });

  it('kills a program that hangs, with what it started: at a cancel, and at the deadline', async () => {
    const hang = `const { spawn } = require('node:child_process');
process.on('SIGTERM', () => {});
const child = spawn('sleep', ['600'], { stdio: 'inherit' });
writeFileSync(process.argv[1] + '.child', String(child.pid));
setInterval(() => {}, 1000);`;
    const command = fake(hang);
    const childOf = () =>
      existsSync(`${command}.child`) ? Number(readFileSync(`${command}.child`, 'utf8')) : 0;
    const controller = new AbortController();
    const failing = failureOf(command, { signal: controller.signal });
    await until(() => childOf() > 0);
    const child = childOf();
    controller.abort();
    expect(await failing).toMatchObject({ reason: 'cancelled' });
    await until(() => !isAlive(child) && !isAlive(seenBy(command).pid));

    const other = fake(hang);
    expect(await failureOf(other, { limits: { totalMs: 1_500 } })).toMatchObject({
      reason: 'provider_timeout',
    });
    await until(() => !isAlive(seenBy(other).pid));
  }, 20_000);

  it('bounds the input of a call by its text and by what a program adds', () => {
    const adapter = createCliAdapter({
      provider: { name: 'local', kind: 'cli', program: 'claude' } as ProviderConfig,
      ...{ env: {}, limitsOf: () => LIMITS, redact: (text: string) => text, now: Date.now },
    });
    expect(adapter.inputBound(request())).toBeGreaterThan(32_768);
  });
});
