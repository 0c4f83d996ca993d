import { createHash } from 'node:crypto';
import { Controller, Inject } from '@nestjs/common';
import { decideCall, hasTool } from '@antiphon/config';
import type { AgentConfig, PolicyDecision } from '@antiphon/config';
import { beginToolCall } from '@antiphon/contracts/agent';
import { textCause } from '@antiphon/contracts/causes';
import { MAX_TOOL_TIMEOUT_MS, callTool, canActOutside } from '@antiphon/contracts/sandbox';
import { failpoint, isAppError, rejected, retry, transient } from '@antiphon/kernel';
import type { JsonValue } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { RequestClient } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { REQUESTS, SERVICE_IDENTITY } from '@antiphon/service-host';
import type { ServiceIdentity } from '@antiphon/service-host';
import { toolFailed } from '@antiphon/sandbox-domain';
import type { ToolOutcome } from '@antiphon/sandbox-domain';
import { SANDBOX } from './sandbox.js';
import type { CallRegistry, CallToolReply, CallToolRequest, RunningCall } from './call-registry.js';
import { holdLarge } from './held-results.js';
import type { HeldResults } from './held-results.js';
import { findHostedTool } from './tool-source.js';
import type { HostedCall, HostedTool, ToolSource } from './tool-source.js';

export interface CallToolDeps {
  readonly sources: readonly ToolSource[];
  /** Configured agents, whose approval rules apply. */
  readonly agents: readonly Pick<AgentConfig, 'id' | 'tools' | 'approvals' | 'policy'>[];
  readonly calls: CallRegistry;
  readonly held: HeldResults;
  readonly logger: Logger;
}

/** Maximum size of a tool's input, as JSON in UTF-8. */
export const MAX_TOOL_INPUT_BYTES = 1024 * 1024;
const LATE = 'the request came after its deadline; the tool was not run';
const GIVEN_UP = 'the caller gave the call up before a cell was free; the tool was not run';
const UNCOMMITTED = 'the tool has capabilities, and the request of its call is not in the log yet';
const NOT_PERMITTED = 'the caller gave the call up before its first effect; the tool did not act';

const isTransient = (error: unknown): boolean => isAppError(error) && error.kind === 'transient';

const fingerprintOf = (name: string, input: Buffer): string =>
  createHash('sha256').update(name).update('\0').update(input).digest('base64');

/** The tool did not run. The caller may try again, and records no text of this. */
const unavailable = (message: string): ToolOutcome => toolFailed('TOOL.UNAVAILABLE', textCause(message));

const explainAbsence = async (
  sources: readonly ToolSource[],
  workspace: string,
  name: string,
): Promise<ToolOutcome> => {
  for (const source of sources) {
    const why = await source.explainAbsence?.(workspace, name);
    if (why) return why;
  }
  return toolFailed('TOOL.UNKNOWN', { kind: 'tool_missing', name });
};

/**
 * Returns the decisions of rules on a call: those of its agent, which may have got the tool after
 * its start. When the request names none, the rules of all agents with the tool apply.
 */
const decisionsOn = (
  agents: CallToolDeps['agents'],
  { description }: HostedTool,
  { agentId, input }: CallToolRequest,
): readonly PolicyDecision[] =>
  agents
    .filter(({ id, tools }) => (agentId === undefined ? hasTool(tools, description.name) : id === agentId))
    .map((agent) => decideCall(agent, { tool: description.name, input: input as JsonValue, description }));

/** Returns whether the tool is the one that was approved. */
const isApproved = (
  { description: { moduleDigest, grants } }: HostedTool,
  approved: NonNullable<CallToolRequest['approved']>,
): boolean =>
  approved.moduleDigest === moduleDigest &&
  approved.grants.length === grants.length &&
  grants.every((grant, index) => grant === approved.grants[index]);

/** Returns why a tool is not run, or null. */
const findRefusal = (
  agents: CallToolDeps['agents'],
  tool: HostedTool,
  request: CallToolRequest,
  { length }: Buffer,
): ToolOutcome | null => {
  const { approved, onlyWithoutGrants } = request;
  if (onlyWithoutGrants && canActOutside(tool.description)) return unavailable(UNCOMMITTED);
  const decisions = decisionsOn(agents, tool, request);
  const denied = decisions.find((one) => one.decision === 'deny');
  if (denied) {
    const { name } = tool.description;
    return toolFailed('TOOL.DENIED', { kind: 'tool_denied_by_rule', name, rule: denied.rule });
  }
  if (approved === undefined && decisions.some(({ decision }) => decision === 'ask'))
    return toolFailed('TOOL.DENIED', { kind: 'tool_unapproved' });
  if (approved !== undefined && !isApproved(tool, approved))
    return toolFailed('TOOL.CHANGED', { kind: 'tool_changed' });
  if (length > MAX_TOOL_INPUT_BYTES)
    return toolFailed('TOOL.DENIED', {
      ...{ kind: 'tool_input_too_large', bytes: length, max: MAX_TOOL_INPUT_BYTES },
    });
  return null;
};

const NEVER_RUN: ReadonlySet<string> = new Set(['TOOL.UNAVAILABLE', 'TOOL.NO_WORKER']);
const MAY_REPEAT: ReadonlySet<string> = new Set(['TOOL.TIMEOUT', 'TOOL.WORKER_LOST']);

/**
 * Returns false when the same call may run again: it did not run, or its tool is safe to repeat.
 */
const isFinal = (reply: CallToolReply, isIdempotent: boolean): boolean =>
  reply.outcome === 'completed' ||
  (!NEVER_RUN.has(reply.code) && !(isIdempotent && MAY_REPEAT.has(reply.code)));

/** A call that is about to run, and whether a request of it has left. */
interface Attempt {
  readonly call: RunningCall;
  hasReachedOutside: boolean;
  /** True once a request of it was held back, because its caller did not permit the call to begin. */
  isHeldBack: boolean;
}

/** Delay before the caller is asked again that could not be reached, ms. */
const BEGIN_RETRY = { firstMs: 50, maxMs: 250 };

/**
 * Handles `cmd.sandbox.tool.call`: checks the fence, then runs each call id at most once. A failure
 * of the tool is a reply.
 */
@Controller()
export class CallTool {
  constructor(
    @Inject(SANDBOX) private readonly deps: CallToolDeps,
    @Inject(REQUESTS) private readonly requests: RequestClient,
    @Inject(SERVICE_IDENTITY) private readonly identity: Pick<ServiceIdentity, 'id'>,
  ) {}

  /**
   * Throws `SANDBOX.FENCED` and `TOOL.CALL_ID_REUSED` (conflict), and `SANDBOX.LOST` (transient)
   * when this process stops during the call.
   */
  @HandleRequest(callTool)
  async handle(request: CallToolRequest): Promise<CallToolReply> {
    const { sources, calls } = this.deps;
    calls.checkFence(request);
    const input = Buffer.from(JSON.stringify(request.input));
    return calls.runOnce(request, fingerprintOf(request.name, input), async (call) => {
      const tool = await findHostedTool(sources, request.workspace, request.name);
      await failpoint('sandbox.call.taken', () => request.name);
      const reply = await this.run(request, input, tool, {
        ...{ call, hasReachedOutside: false, isHeldBack: false },
      });
      await failpoint('sandbox.call.returned');
      this.logReply(request, reply);
      return { reply, isFinal: isFinal(reply, tool?.description.idempotent ?? false) };
    });
  }

  private async run(
    request: CallToolRequest,
    input: Buffer,
    tool: HostedTool | undefined,
    attempt: Attempt,
  ): Promise<CallToolReply> {
    const { sources, agents } = this.deps;
    const startedAt = performance.now();
    const reply = (outcome: ToolOutcome, moduleDigest = ''): CallToolReply => {
      const durationMs = performance.now() - startedAt;
      return outcome.outcome === 'completed'
        ? { ...outcome, moduleDigest, durationMs }
        : { ...outcome, durationMs, ...(attempt.hasReachedOutside ? { mayHaveActed: true } : {}) };
    };
    if (attempt.call.isLate()) return reply(unavailable(LATE));
    if (!tool) return reply(await explainAbsence(sources, request.workspace, request.name));
    const refusal = findRefusal(agents, tool, request, input);
    if (refusal !== null) return reply(refusal);
    const end = await tool.run(this.toHostedCall(tool, request, input, attempt));
    if (end.end === 'stopped') throw transient('SANDBOX.LOST', 'the sandbox stopped during the call');
    if (end.end === 'unavailable') return reply(unavailable(end.message));
    if (attempt.isHeldBack && !attempt.hasReachedOutside) return reply(unavailable(NOT_PERMITTED));
    const { outcome, large } = holdLarge(this.deps.held, request, end.outcome);
    const replied = reply(outcome, tool.description.moduleDigest);
    return replied.outcome === 'completed' && large
      ? { ...replied, large: { ...large, holder: this.identity.id } }
      : replied;
  }

  private toHostedCall(
    { description }: HostedTool,
    request: CallToolRequest,
    input: Buffer,
    attempt: Attempt,
  ): HostedCall {
    const { call } = attempt;
    return {
      ...{ request, input, signal: call.signal },
      timeoutMs: Math.min(description.timeoutMs ?? MAX_TOOL_TIMEOUT_MS, request.timeoutMs ?? Infinity),
      findObstacle: () => (call.isWatched() ? null : GIVEN_UP),
      begin: async (ended) => {
        await this.waitForPermission(request, attempt, ended);
        attempt.hasReachedOutside = true;
      },
    };
  }

  /**
   * Waits until the call may have its first effect: its caller waits for it and has permitted it.
   * Throws if the caller gave the attempt up, or cannot be reached until `ended` aborts.
   */
  private async waitForPermission(
    { attemptId, sentAt, name }: CallToolRequest,
    attempt: Attempt,
    ended: AbortSignal,
  ): Promise<void> {
    const { call } = attempt;
    await call.waitUntilWatched(ended);
    if (attempt.hasReachedOutside || attemptId === undefined) return;
    await failpoint('work.call.begun', () => name);
    const ask = () => this.requests.request(beginToolCall, { attemptId }, { processId: sentAt?.caller });
    attempt.isHeldBack = true;
    const { granted } = await retry(ask, { ...BEGIN_RETRY, signal: ended, isRetryable: isTransient });
    if (!granted) throw rejected('TOOL.GIVEN_UP', NOT_PERMITTED);
    await failpoint('work.call.permitted', () => name);
    // This process may have been suspended while it waited.
    await call.waitUntilWatched(ended);
    attempt.isHeldBack = false;
  }

  private logReply({ name, callId, sessionId }: CallToolRequest, reply: CallToolReply): void {
    const { durationMs, outcome } = reply;
    const { logger } = this.deps;
    const fields = { tool: name, callId, sessionId, outcome, durationMs };
    if (outcome === 'completed') logger.debug({ ...fields, isError: reply.isError }, 'tool call completed');
    else logger.warn({ ...fields, code: reply.code, reason: reply.message }, 'tool call failed');
  }
}
