import { textCause } from '@antiphon/contracts/causes';
import type { ToolOutcome, TurnToolCall } from '@antiphon/conversation-domain';
import type { NativeToolName } from '@antiphon/config';
import type { createTask, sendAgentMessage, spawnAgent } from '@antiphon/contracts/agent';

import { bug, clipText, invalid, isAppError, isoTime, rejected, toStorable } from '@antiphon/kernel';
import type { AppError } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { z } from 'zod';
import type { LogUsage, TaskOf } from '@antiphon/orchestration-features';
import { retryTransient, Stopped, NATIVE_INPUT, NATIVE_MODULE } from '@antiphon/conversation-features';
import { FileTools } from './file-tools.js';
import type { FileToolsDeps } from './file-tools.js';
import { AskAgent, actorOf } from './ask-agent.js';
import type { AgentTurns, AskAgentDeps } from './ask-agent.js';
import type { NativeCall, NativeToolPort, ToolStep } from '@antiphon/conversation-features';

/** Requests that native tools make in this process. */
export interface NativeRequests extends AgentTurns {
  sendMessage(
    request: z.output<typeof sendAgentMessage.request>,
  ): Promise<z.output<typeof sendAgentMessage.reply>>;
  readonly spawnAgent?: (
    request: z.output<typeof spawnAgent.request>,
  ) => Promise<z.input<typeof spawnAgent.reply>>;
  readonly createTask?: (
    request: z.output<typeof createTask.request>,
  ) => Promise<z.input<typeof createTask.reply>>;
}

type PlanInput<N extends 'make_plan' | 'plan_step'> = z.output<(typeof NATIVE_INPUT)[N]>;
/** Plans, as native tools make and report them. */
export interface NativePlans {
  make(call: NativeCall, input: PlanInput<'make_plan'>): Promise<string>;
  report(call: NativeCall, input: PlanInput<'plan_step'>): Promise<string>;
}

export interface NativeToolsDeps extends AskAgentDeps, FileToolsDeps {
  readonly taskOf: TaskOf;
  readonly logger: Logger;
  readonly logUsage: Pick<LogUsage, 'requireRoom'>;
}

/** Tools that begin work or store texts. */
const ADDING_TOOLS: ReadonlySet<string> = new Set([
  ...['send_message', 'ask_agent', 'hand_over', 'spawn_agent', 'delegate_task', 'make_plan'],
  ...['write', 'edit', 'move'],
]);

const unavailable = (name: string): Error => bug('TOOL.UNAVAILABLE', `${name} is not connected`);

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
/** Maximum length of a result, UTF-16 units, so that its event fits. */
const MAX_CONTENT = 200_000;

/** Returns the message of an error, with the text that an edit may have meant. */
const withProposal = ({ message, data }: AppError): string => {
  const proposal = data?.['proposal'];
  return typeof proposal === 'string'
    ? `${message}\nNothing was changed. The file has this text there; repeat the edit with it as \`old\` if you mean it:\n${proposal}`
    : message;
};

/**
 * Runs the native tools in this process. A repeated call has the same effect and result: the id of
 * the call is the idempotency key.
 */
export class NativeTools implements NativeToolPort {
  private requests: NativeRequests | null = null;
  private readonly asking: AskAgent;
  private readonly runs: Runs;
  private readonly files: FileTools;
  private plans: NativePlans | null = null;

  constructor(private readonly deps: NativeToolsDeps) {
    this.asking = new AskAgent(deps, () => this.connected());
    const files = new FileTools(deps);
    this.files = files;
    this.runs = {
      send_message: (call, input) => this.sendMessage(call, input),
      ask_agent: (call, input) => this.asking.ask(call, input),
      hand_over: (call, input) => this.asking.handOver(call, input),
      spawn_agent: (call, input) => this.spawnAgent(call, input),
      delegate_task: (call, input) => this.delegateTask(call, input),
      make_plan: (call, input) => this.connectedPlans().make(call, input),
      plan_step: (call, input) => this.connectedPlans().report(call, input),
      ...files.runs,
    };
  }

  /** Sets the handlers of this process. Called once, when they exist. */
  connect(requests: NativeRequests): void {
    this.requests = requests;
  }

  /** Sets the handler of tasks, which starts after the others. */
  connectTasks(createTask: NonNullable<NativeRequests['createTask']>): void {
    this.requests = { ...this.connected(), createTask };
  }

  /** Sets the handler of plans. */
  connectPlans(plans: NativePlans): void {
    this.plans = plans;
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
        () => this.files.preview(native, call.name, parsed.data),
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
    const failed = (code: string, message: string): ToolOutcome => ({
      type: 'ToolCallFailed',
      data: { turnId, callId, code, cause: textCause(clipText(toStorable(message), MAX_CONTENT)) },
    });
    if (!open || !started) throw new Stopped('lost');
    const completed = (content: string): ToolOutcome => {
      const durationMs = performance.now() - startedAt;
      const data = { turnId, callId, content: clipText(toStorable(content), MAX_CONTENT), isError: false };
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
      return completed(content);
    } catch (error) {
      if (error instanceof Stopped && error.reason === 'cancelled')
        return failed('TOOL.CANCELLED', 'the turn was cancelled while the tool ran');
      if (!isAppError(error)) throw error;
      return failed(error.code, withProposal(error));
    }
  }

  /** Cancels the turn of another agent that a lost call began. A failure is logged. */
  async abandon({ actor }: Pick<ToolStep, 'actor'>, call: TurnToolCall): Promise<void> {
    const agentId = actor.fold().state.started?.agentId;
    if (agentId !== undefined) await this.asking.abandon({ workspace: actor.workspace, agentId }, call);
  }

  private async perform(native: NativeCall, { name, input }: TurnToolCall): Promise<string> {
    const tool = name as NativeToolName;
    const parsed = NATIVE_INPUT[tool].safeParse(input);
    if (!parsed.success) {
      const issues = parsed.error.issues.map(({ path, message }) =>
        [path.join('.'), message].join(' ').trim(),
      );
      throw invalid('TOOL.INVALID_INPUT', issues.slice(0, 5).join('; '));
    }
    // The table's type binds each tool to its input; indexing by a union loses that.
    // A full log takes no new work of agents. The turn itself ends.
    if (ADDING_TOOLS.has(tool)) this.deps.logUsage.requireRoom(native.workspace);
    const run = this.runs[tool] as ((call: NativeCall, input: unknown) => Promise<string>) | undefined;
    if (!run) throw rejected('TOOL.UNKNOWN', `there is no tool "${tool}"`);
    return run(native, parsed.data);
  }

  private async sendMessage(call: NativeCall, input: Inputs['send_message']): Promise<string> {
    const { agent, topic, text } = input;
    const to =
      agent === undefined ? (topic === undefined ? { everyone: true as const } : { topic }) : { agent };
    const { messageId } = await this.connected().sendMessage({
      workspace: call.workspace,
      message: { type: 'AgentSpoke', to, content: { text }, cause: call.callId },
      actor: actorOf(call),
      idempotencyKey: call.callId,
    });
    return JSON.stringify({ messageId });
  }

  /** The child belongs to the caller's tree, and may call no tool that the caller may not. */
  private async spawnAgent(call: NativeCall, input: Inputs['spawn_agent']): Promise<string> {
    const { spawnAgent: spawn } = this.connected();
    if (!spawn) throw unavailable('spawn_agent');
    const { instructions: systemPrompt, when_full: whenFull, ...given } = input;
    const caller = await this.deps.agents.load(call.workspace, call.agentId);
    const base = caller ? { base: caller.base } : {};
    const spec = { ...given, ...base, ...(systemPrompt === undefined ? {} : { systemPrompt }), whenFull };
    const { agent } = await spawn({
      workspace: call.workspace,
      spec: { ...spec, parent: call.agentId },
      actor: actorOf(call),
      idempotencyKey: call.callId,
    });
    const { id: agentId, state, queued } = agent;
    return JSON.stringify({ agentId, state, queued });
  }

  private async delegateTask(call: NativeCall, input: Inputs['delegate_task']): Promise<string> {
    const { createTask: create } = this.connected();
    if (!create) throw unavailable('delegate_task');
    const { chain } = call.turn;
    // The task counts towards the budget of the one that its delegator does.
    const parentTask = await this.deps.taskOf(call.workspace, { chain, sessionKey: call.sessionKey });
    const { task } = await create({
      workspace: call.workspace,
      spec: {
        ...input,
        ...(parentTask === null ? {} : { parentTask }),
        priority: input.priority ?? 5,
        capabilities: input.capabilities ?? [],
        worker: 'agent',
      },
      actor: actorOf(call),
      idempotencyKey: call.callId,
    });
    return JSON.stringify({ taskId: task.id, state: task.state });
  }

  private connectedPlans(): NativePlans {
    if (!this.plans) throw unavailable('make_plan');
    return this.plans;
  }

  private connected(): NativeRequests {
    if (!this.requests) throw unavailable('native');
    return this.requests;
  }
}
