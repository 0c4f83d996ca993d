import { storableCause } from '@antiphon/agent-log';
import type { StoredResult } from '@antiphon/contracts/agent';
import { causedError, causeOf } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import type { ToolOutcome, TurnToolCall } from '@antiphon/conversation-domain';
import type { NativeToolName } from '@antiphon/config';

import {
  clipText,
  clipToJsonBytes,
  invalid,
  isAppError,
  isoTime,
  rejected,
  toStorable,
} from '@antiphon/kernel';
import type { AppError, Clock } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { z } from 'zod';
import type { LogUsage, Plans } from '@antiphon/orchestration-features';
import { retryTransient, Stopped, NATIVE_INPUT, NATIVE_MODULE } from '@antiphon/conversation-features';
import type { AskAgent } from './ask-agent.js';
import type { DelegateTools } from './delegate-tools.js';
import type { FileTools } from './file-tools.js';
import type { ToolReads } from './tool-reads.js';
import type { NativeCall, NativeToolPort, ToolStep } from '@antiphon/conversation-features';

export interface NativeToolsDeps {
  readonly asking: AskAgent;
  readonly files: FileTools;
  readonly reads: Pick<ToolReads, 'runs' | 'storeLarge'>;
  readonly delegating: DelegateTools;
  readonly plans: Pick<Plans, 'make' | 'report'>;
  readonly logUsage: Pick<LogUsage, 'requireRoom'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Tools that begin work or store texts. */
const ADDING_TOOLS: ReadonlySet<string> = new Set([
  ...['send_message', 'ask_agent', 'hand_over', 'spawn_agent', 'delegate_task', 'make_plan'],
  ...['write', 'edit', 'move'],
]);

type Inputs = { readonly [N in NativeToolName]: z.output<(typeof NATIVE_INPUT)[N]> };
type Runs = { readonly [N in NativeToolName]?: (call: NativeCall, input: Inputs[N]) => Promise<string> };

const nativeCallOf = (
  { workspace, sessionId, lease }: Pick<ToolStep['actor'], 'workspace' | 'sessionId' | 'lease'>,
  turn: NativeCall['turn'],
  { sessionKey, agentId }: Pick<NativeCall, 'sessionKey' | 'agentId'>,
  { callId, timeoutMs }: TurnToolCall,
  signal: AbortSignal,
): NativeCall => {
  // That of the lease under which the call began: a later one may have another driver before it.
  const fence = lease.fence();
  return {
    ...{ workspace, sessionId, sessionKey, agentId, turn, callId, signal, timeoutMs },
    fence: () => {
      if (!fence) throw new Stopped('lost');
      return fence;
    },
  };
};

/** Maximum length of a preview, UTF-16 units. */
const MAX_PREVIEW = 20_000;
/** Maximum length of a result that is recorded with its effect, UTF-16 units. */
const MAX_CONTENT = 200_000;
/** Maximum size of a result, bytes of JSON, so that its event fits. */
const MAX_CONTENT_BYTES = 900_000;

const storableContent = (content: string): string =>
  clipToJsonBytes(clipText(toStorable(content), MAX_CONTENT), MAX_CONTENT_BYTES);

/** Returns the message of an error, with the text that an edit may have meant. */
const withProposal = (error: AppError): Cause => {
  const proposal = error.data['proposal'];
  if (typeof proposal !== 'string') return causeOf(error);
  return { kind: 'edit_not_made', why: causeOf(error), proposal };
};

/**
 * Runs the native tools in this process. A repeated call has the same effect and result: the id of
 * the call is the idempotency key.
 */
export class NativeTools implements NativeToolPort {
  private readonly runs: Runs;

  constructor(private readonly deps: NativeToolsDeps) {
    const { asking, delegating, files, plans, reads } = deps;
    this.runs = {
      send_message: (call, input) => delegating.sendMessage(call, input),
      ask_agent: (call, input) => asking.ask(call, input),
      hand_over: (call, input) => asking.handOver(call, input),
      spawn_agent: (call, input) => delegating.spawnAgent(call, input),
      delegate_task: (call, input) => delegating.delegateTask(call, input),
      make_plan: (call, input) => plans.make(call, input),
      plan_step: (call, input) => plans.report(call, input),
      ...reads.runs,
      ...files.runs,
    };
  }

  /**
   * Describes what a call would change, for the approval of it. Returns undefined for a call that
   * changes no file. A call that would be refused now is described by the reason.
   */
  async preview(
    { actor, signal }: Pick<ToolStep, 'actor' | 'signal'>,
    call: TurnToolCall,
  ): Promise<string | undefined> {
    const { open, started } = actor.fold().state;
    if (!open || !started || (call.name !== 'write' && call.name !== 'edit')) return undefined;
    const parsed = NATIVE_INPUT[call.name].safeParse(call.input);
    if (!parsed.success) return undefined;
    const native = nativeCallOf(actor, open, started, call, signal);
    try {
      const text = await retryTransient(
        () => this.deps.files.preview(native, call.name, parsed.data),
        signal,
        this.deps.logger,
      );
      return text === null ? undefined : clipText(toStorable(text), MAX_PREVIEW);
    } catch (error) {
      if (!isAppError(error)) throw error;
      return clipText(toStorable(`refused as it is now: ${error.code}: ${error.message}`), MAX_PREVIEW);
    }
  }

  /**
   * Runs a call and returns its outcome. One that was recorded together with the facts of its
   * effect is passed to `onRecorded`. Throws `Stopped` if this process no longer drives the call.
   */
  async run(
    context: ToolStep,
    call: TurnToolCall,
    onRecorded: (outcome: ToolOutcome) => void = () => undefined,
  ): Promise<ToolOutcome> {
    const { actor, signal } = context;
    const { open, started } = actor.fold().state;
    const turnId = open?.turnId ?? '';
    const { callId } = call;
    const startedAt = performance.now();
    const failed = (code: string, cause: Cause): ToolOutcome => ({
      type: 'ToolCallFailed',
      data: { turnId, callId, code, cause: storableCause(cause, storableContent) },
    });
    if (!open || !started) throw new Stopped('lost');
    const completed = (content: string, stored: { stored?: StoredResult } = {}): ToolOutcome => {
      const durationMs = performance.now() - startedAt;
      const data = { turnId, callId, content: storableContent(content), isError: false, ...stored };
      return { type: 'ToolCallCompleted', data: { ...data, moduleDigest: NATIVE_MODULE, durationMs } };
    };
    const recordWith: NativeCall['recordWith'] = async (content, { stream, blobs }) => {
      const outcome = completed(content);
      let isRecorded = false;
      const command = {
        type: 'RecordToolOutcomes',
        data: { outcomes: [outcome] },
        now: isoTime(this.deps.clock),
      } as const;
      await context.record(command, {
        ...{ before: [stream], blobs },
        onRecorded: () => (isRecorded = true),
      });
      if (isRecorded) onRecorded(outcome);
      return isRecorded;
    };
    const native = { ...nativeCallOf(actor, open, started, call, signal), recordWith };
    try {
      const content = await retryTransient(() => this.perform(native, call), signal, this.deps.logger);
      const large = await this.deps.reads.storeLarge(actor.workspace, callId, content);
      return large ? completed(large.content, { stored: large.stored }) : completed(content);
    } catch (error) {
      if (error instanceof Stopped && error.reason === 'cancelled')
        return failed('TOOL.CANCELLED', { kind: 'tool_running_at_cancel' });
      if (!isAppError(error)) throw error;
      return failed(error.code, withProposal(error));
    }
  }

  /** Cancels the turn of another agent that a lost call began. A failure is logged. */
  async abandon({ actor }: Pick<ToolStep, 'actor'>, call: TurnToolCall): Promise<void> {
    const agentId = actor.fold().state.started?.agentId;
    if (agentId !== undefined) await this.deps.asking.abandon({ workspace: actor.workspace, agentId }, call);
  }

  private async perform(native: NativeCall, { name, input }: TurnToolCall): Promise<string> {
    const tool = name as NativeToolName;
    const parsed = NATIVE_INPUT[tool].safeParse(input);
    if (!parsed.success) {
      const issues = parsed.error.issues.map(({ path, message }) =>
        [path.join('.'), message].join(' ').trim(),
      );
      const cause = { kind: 'tool_input_invalid', issues: issues.slice(0, 5).join('; ') } as const;
      throw causedError(invalid, 'TOOL.INVALID_INPUT', cause);
    }
    // The table's type binds each tool to its input; indexing by a union loses that.
    // A full log takes no new work of agents. The turn itself ends.
    if (ADDING_TOOLS.has(tool)) this.deps.logUsage.requireRoom(native.workspace);
    const run = this.runs[tool] as ((call: NativeCall, input: unknown) => Promise<string>) | undefined;
    if (!run) throw causedError(rejected, 'TOOL.UNKNOWN', { kind: 'tool_unknown', name: tool });
    return run(native, parsed.data);
  }
}
