import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ModelFailure } from '@antiphon/providers-domain';
import type { ModelAnswer, ModelPrompt, ModelRequest } from '@antiphon/providers-domain';
import type { ProviderConfig } from '@antiphon/config';
import type { Cause } from '@antiphon/contracts/causes';
import { AnswerBuilder, fieldsOf } from '../transport/answer-builder.js';
import { brokenAnswer } from '../transport/failures.js';
import { runCall } from '../transport/provider-call.js';
import type { CallEnvironment, ProviderAdapter, ProviderCall } from '../transport/provider-call.js';
import { CliFlood, MAX_OUTPUT_BYTES, runCli } from './cli-process.js';
import type { CliCommand, CliEnd } from './cli-process.js';
import { CLI_PROGRAMS } from './cli-programs.js';
import type { CliReader } from './cli-programs.js';
import { renderCliPrompt } from './cli-prompt.js';

/** Tokens that a program adds to a prompt: its own instructions and descriptions. */
const PROGRAM_TOKENS = 32_768;
/** Bytes of text after which an answer has certainly more than its granted tokens. */
const BYTES_PER_TOKEN = 16;

export interface CliDeps extends CallEnvironment {
  readonly provider: ProviderConfig;
  /** Variables of the agent's process. A program gets the ones that the provider names. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

const failure = (why: Cause, dispatched: boolean, retryable: boolean): ModelFailure =>
  new ModelFailure({ reason: 'provider_error', why, dispatched, retryable });

/** Returns the named variables, and `PATH`, without which a script does not find its interpreter. */
const environmentOf = (
  { passEnv = [] }: ProviderConfig,
  env: CliDeps['env'],
  { maxOutputTokens }: ModelRequest,
): Record<string, string> => {
  const named = ['PATH', ...passEnv].flatMap((name) => {
    const value = env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { ...Object.fromEntries(named), CLAUDE_CODE_MAX_OUTPUT_TOKENS: String(maxOutputTokens) };
};

/** One call of a program. */
class CliCall {
  private readonly reader: CliReader;
  private readonly answer: AnswerBuilder;
  private readonly ended = new AbortController();
  private bytes = 0;
  private isCut = false;
  private problem: string | null = null;

  constructor(
    private readonly deps: CliDeps,
    private readonly request: ModelRequest,
    sink: ConstructorParameters<typeof AnswerBuilder>[0],
  ) {
    const count = (text: string): void => void (this.bytes += Buffer.byteLength(text));
    this.answer = new AnswerBuilder({
      onText: (text) => (count(text), sink.onText(text)),
      onThought: (text) => (count(text), sink.onThought(text)),
    });
    this.reader = CLI_PROGRAMS[deps.provider.program ?? 'claude'].createReader(this.answer);
  }

  usage(): ModelAnswer['usage'] {
    return this.reader.usage();
  }

  async complete(call: ProviderCall): Promise<ModelAnswer> {
    const { folder } = this.deps.provider;
    call.onStop(() => this.ended.abort());
    const own = folder === undefined ? await mkdtemp(join(tmpdir(), 'antiphon-cli-')) : null;
    try {
      const end = await this.run(call, this.toCommand(folder ?? own ?? ''));
      if (call.failure !== null) throw call.failure;
      return this.finish(end);
    } catch (error) {
      throw error instanceof CliFlood
        ? brokenAnswer('too_many_bytes', { detail: MAX_OUTPUT_BYTES, retryable: false })
        : error;
    } finally {
      if (own !== null) await rm(own, { recursive: true, force: true });
    }
  }

  private toCommand(cwd: string): CliCommand {
    const { provider, env } = this.deps;
    const { command, args } = CLI_PROGRAMS[provider.program ?? 'claude'];
    return {
      ...{ command: provider.command ?? command, args: args(this.request), cwd },
      ...{ env: environmentOf(provider, env, this.request), input: renderCliPrompt(this.request) },
    };
  }

  private run(call: ProviderCall, command: CliCommand): Promise<CliEnd> {
    return runCli(command, this.ended.signal, {
      onStarted: () => call.connected(),
      onLine: (line) => {
        call.received();
        for (const value of this.answer.parseEvent(line)) this.read(fieldsOf(value), call);
      },
    });
  }

  private read(line: ReturnType<typeof fieldsOf>, call: ProviderCall): void {
    if (!line || this.isCut) return;
    this.problem ??= this.reader.read(line);
    if (this.reader.isComplete()) call.finishing();
    if (this.bytes <= this.request.maxOutputTokens * BYTES_PER_TOKEN) return;
    this.isCut = true;
    this.ended.abort();
  }

  private finish({ hasStarted, status, detail }: CliEnd): ModelAnswer {
    const { provider, redact } = this.deps;
    const { name } = provider;
    if (!hasStarted || status === 'exit 127' || status === 'exit 126')
      throw failure({ kind: 'cli_not_started', provider: name, detail: redact(detail) }, false, false);
    if (this.problem !== null)
      throw failure(
        { kind: 'cli_refused', provider: name, said: redact(this.problem).slice(0, 1_000) },
        true,
        true,
      );
    const isWhole = this.reader.isComplete() || this.isCut;
    if (!isWhole && status !== 'exit 0')
      throw failure({ kind: 'cli_ended', provider: name, status, detail: redact(detail) }, true, true);
    if (!isWhole) throw this.answer.incomplete();
    const finishReason = this.isCut ? 'length' : 'stop';
    return this.answer.finish({ toolCalls: [], finishReason, usage: this.reader.usage() });
  }
}

/**
 * Calls a local program for each answer, in a process group of its own. It has limits of the kernel
 * and the named variables, and works in the folder of the provider, else in a new empty one.
 */
export const createCliAdapter = (deps: CliDeps): ProviderAdapter => ({
  kind: 'cli',
  complete: (request, sink) => {
    const cli = new CliCall(deps, request, sink);
    return runCall(request, deps, { complete: (call) => cli.complete(call), usage: () => cli.usage() });
  },
  inputBound: (prompt: ModelPrompt) => Buffer.byteLength(renderCliPrompt(prompt)) + PROGRAM_TOKENS,
});
