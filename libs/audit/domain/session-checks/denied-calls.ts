import type { SessionEvent } from '@antiphon/contracts/agent';
import { type CheckRun, type EventPlace, type Finding, violation } from '../audit-check.js';
import type { Parsed, SessionCheck } from '../audit-check.js';

/** Codes of calls that policy, capabilities or the tools of an agent refuse. */
const DENIALS: ReadonlySet<string> = new Set(['TOOL.DENIED', 'TOOL.UNKNOWN', 'TOOL.CHANGED']);

type CallEnd = Extract<
  SessionEvent,
  {
    type:
      | 'ApprovalDenied'
      | 'ApprovalExpired'
      | 'ApprovalVoided'
      | 'ToolCallCompleted'
      | 'ToolCallFailed'
      | 'ToolCallUnknown';
  }
>;

const isDenial = (event: CallEnd): boolean =>
  event.type.startsWith('Approval') || (event.type === 'ToolCallFailed' && DENIALS.has(event.data.code));

class DeniedCallRun implements CheckRun<Parsed<SessionEvent>> {
  /** Calls of the newest response in each open turn. */
  private readonly asked = new Map<string, readonly string[]>();
  /** Calls with an end, and whether it is a denial. */
  private readonly ends = new Map<string, boolean>();
  private denials = 0;

  see({ place: at, content: event }: Parsed<SessionEvent>): Finding[] {
    switch (event.type) {
      case 'ModelCallCompleted':
        this.asked.set(
          event.data.turnId,
          event.data.toolCalls.map(({ callId }) => callId),
        );
        return [];
      case 'ToolCallRequested':
      case 'ToolCallClaimed':
        return this.ends.get(event.data.callId) === true
          ? [violation(at, `call ${event.data.callId} is made after its denial`)]
          : [];
      case 'ApprovalDenied':
      case 'ApprovalExpired':
      case 'ApprovalVoided':
      case 'ToolCallCompleted':
      case 'ToolCallFailed':
      case 'ToolCallUnknown':
        return this.endCall(event, at);
      case 'ModelCallStarted':
      case 'TurnCompleted':
        return this.requireEnds(event.data.turnId, at);
      default:
        return [];
    }
  }

  end(): Finding[] {
    return [];
  }

  count(): number {
    return this.denials;
  }

  private endCall(event: CallEnd, at: EventPlace): Finding[] {
    const { callId } = event.data;
    const isDenied = isDenial(event);
    const before = this.ends.get(callId);
    this.ends.set(callId, isDenied || before === true);
    if (isDenied) this.denials++;
    return before !== undefined && (isDenied || before)
      ? [violation(at, `the denial of call ${callId} is not its only end`)]
      : [];
  }

  /** A call that is neither made nor denied by an event would be a denial without a record. */
  private requireEnds(turnId: string, at: EventPlace): Finding[] {
    const open = (this.asked.get(turnId) ?? []).filter((callId) => !this.ends.has(callId));
    this.asked.delete(turnId);
    return open.map((callId) =>
      violation(at, `turn ${turnId} continues without an event that ends ${callId}`),
    );
  }
}

/** Checks that each denied call has exactly one event for its denial, and is not made. */
export const denialsAreOneEvent: SessionCheck = {
  name: 'denials-are-one-event',
  about:
    'every tool call that a person, a deadline, a rule, a capability or a changed module denied has exactly one event for it ' +
    'and is not made, and no call of a continued turn is left without an event that ends it',
  counts: 'denials',
  start: () => new DeniedCallRun(),
};
