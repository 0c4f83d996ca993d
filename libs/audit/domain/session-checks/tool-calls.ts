import type { SessionEvent, SessionEventOf } from '@antiphon/contracts/agent';
import {
  type CheckRun,
  type EventPlace,
  type Finding,
  open,
  type Parsed,
  violation,
} from '../audit-check.js';
import type { SessionCheck } from '../audit-check.js';

type Requested = SessionEventOf<'ToolCallRequested'>['data'];
type Deferred = SessionEventOf<'ToolCallDeferred'>['data'];
type Outcome = SessionEventOf<'ToolCallCompleted' | 'ToolCallFailed' | 'ToolCallUnknown'>;

/** A requested tool call without an outcome. */
interface OpenCall {
  readonly at: EventPlace;
  /** True if the tool may be called only after a claim. */
  readonly needsClaim: boolean;
  isClaimed: boolean;
  readonly isIdempotent: boolean;
  /** Number of deferred tries that may have reached the tool. */
  deferredTries: number;
  readonly maxAttempts: number;
}

/** Maximum number of tries of an idempotent tool that declares none. */
const DEFAULT_ATTEMPTS = 3;

class ToolCallRun implements CheckRun<Parsed<SessionEvent>> {
  /** Calls in the newest response of a model. */
  private newest: { readonly attempt: number; readonly callIds: ReadonlySet<string> } = {
    attempt: 0,
    callIds: new Set(),
  };
  /** Calls whose arguments cannot be used. They end without a request, and were never made. */
  private readonly unusable = new Set<string>();
  private readonly openCalls = new Map<string, OpenCall>();
  private readonly settled = new Set<string>();
  private calls = 0;

  see({ place, content: event }: Parsed<SessionEvent>): Finding[] {
    switch (event.type) {
      case 'ModelCallStarted':
        return this.requireNoOpenCall(`model attempt ${event.data.attempt} began`, place);
      case 'ModelCallCompleted': {
        const { attempt, toolCalls } = event.data;
        this.newest = { attempt, callIds: new Set(toolCalls.map(({ callId }) => callId)) };
        for (const { callId, problem } of toolCalls) if (problem) this.unusable.add(callId);
        return [];
      }
      case 'ToolCallRequested':
        return this.request(event.data, place);
      case 'ToolCallClaimed':
        return this.claim(event.data.callId, place);
      case 'ToolCallDeferred':
        return this.defer(event.data, place);
      case 'ToolCallCompleted':
      case 'ToolCallFailed':
      case 'ToolCallUnknown':
        return this.settle(event, place);
      case 'TurnCompleted':
      case 'TurnFailed':
      case 'TurnCancelled':
        return this.requireNoOpenCall(`turn ${event.data.turnId} ended`, place);
      default:
        return [];
    }
  }

  end(): Finding[] {
    return [...this.openCalls].map(([callId, { at }]) => open(at, `tool call ${callId} has no outcome yet`));
  }

  count(): number {
    return this.calls;
  }

  private request(data: Requested, at: EventPlace): Finding[] {
    const { callId, attempt, claims: needsClaim = false, idempotent: isIdempotent, retry } = data;
    if (this.openCalls.has(callId) || this.settled.has(callId))
      return [violation(at, `tool call ${callId} was requested twice`)];
    if (this.unusable.has(callId))
      return [violation(at, `tool call ${callId} cannot be used, and was requested`)];
    const maxAttempts = retry?.maxAttempts ?? DEFAULT_ATTEMPTS;
    const call = { at, needsClaim, isClaimed: false, isIdempotent, deferredTries: 0, maxAttempts };
    this.openCalls.set(callId, call);
    this.calls++;
    return attempt === this.newest.attempt && this.newest.callIds.has(callId)
      ? []
      : [violation(at, `tool call ${callId} is not in the response of model attempt ${attempt}`)];
  }

  private claim(callId: string, at: EventPlace): Finding[] {
    const call = this.openCalls.get(callId);
    if (!call) return [violation(at, `tool call ${callId} is claimed without an open request`)];
    if (call.isClaimed) return [violation(at, `tool call ${callId} is claimed twice for one try`)];
    call.isClaimed = true;
    return [];
  }

  private defer({ callId, reason }: Deferred, at: EventPlace): Finding[] {
    const call = this.openCalls.get(callId);
    if (!call) return [violation(at, `tool call ${callId} is deferred without an open request`)];
    call.isClaimed = false;
    if (reason === 'unsent') return [];
    call.deferredTries++;
    if (!call.isIdempotent) return [violation(at, `tool call ${callId} may have run, but is to be repeated`)];
    return call.deferredTries < call.maxAttempts
      ? []
      : [violation(at, `tool call ${callId} is to be made more than ${call.maxAttempts} times`)];
  }

  private settle({ type, data: { callId } }: Outcome, at: EventPlace): Finding[] {
    if (this.settled.has(callId)) return [violation(at, `tool call ${callId} has a second outcome`)];
    this.settled.add(callId);
    const call = this.openCalls.get(callId);
    if (!call && this.unusable.has(callId) && type === 'ToolCallFailed') return [];
    if (!call) return [violation(at, `tool call ${callId} has an outcome and no request`)];
    this.openCalls.delete(callId);
    // A failed call may have ended before it reached its tool.
    return call.needsClaim && !call.isClaimed && type !== 'ToolCallFailed'
      ? [violation(at, `tool call ${callId} was made without a claim`)]
      : [];
  }

  private requireNoOpenCall(event: string, at: EventPlace): Finding[] {
    return [...this.openCalls.keys()].map((callId) =>
      violation(at, `${event} before tool call ${callId} had its outcome`),
    );
  }
}

/**
 * Checks that each requested tool call has one outcome before the next model call, and its claim.
 */
export const toolCallsHaveOneOutcome: SessionCheck = {
  name: 'tool-calls-have-one-outcome',
  about:
    'every requested tool call comes from a model’s response and has exactly one outcome, before the next model call',
  counts: 'tool calls',
  start: () => new ToolCallRun(),
};
