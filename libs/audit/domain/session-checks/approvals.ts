import type { ApprovalEvent, SessionEvent, SessionEventOf } from '@antiphon/contracts/agent';
import { isTurnEnd, open, violation } from '../audit-check.js';
import type { EventPlace, Finding, SessionCheck } from '../audit-check.js';

interface Asked {
  readonly at: EventPlace;
  readonly turnId: string;
  readonly callId: string;
  readonly name: string;
  readonly input: string;
  readonly digest: string;
  readonly moduleDigest: string;
  status: 'pending' | 'granted' | 'closed';
}

const isApproval = (event: SessionEvent): event is ApprovalEvent => event.type.startsWith('Approval');

/** What somebody had to agree to is made after they did, as it was shown to them, and they are asked and answer once. */
export const approvalsPrecedeCalls: SessionCheck = {
  name: 'approvals-precede-calls',
  about:
    'a tool call that somebody was asked about is made only after one answer granted it, with the same digest and module',
  counts: 'approvals',
  start: () => {
    const byCall = new Map<string, Asked>();
    const cancelled = new Set<string>();

    const ask = ({ data }: SessionEventOf<'ApprovalRequested'>, at: EventPlace): Finding[] => {
      const { turnId, callId, name, digest, moduleDigest } = data;
      if (byCall.has(callId)) return [violation(at, `call ${callId} was asked about twice`)];
      const input = JSON.stringify(data.input);
      byCall.set(callId, { at, turnId, callId, name, input, digest, moduleDigest, status: 'pending' });
      return [];
    };
    const answer = (
      event: Exclude<ApprovalEvent, { type: 'ApprovalRequested' }>,
      at: EventPlace,
    ): Finding[] => {
      const { approvalId, callId } = event.data;
      const asked = byCall.get(callId);
      if (!asked) return [violation(at, `${event.type} of approval ${approvalId}, which nobody asked for`)];
      const voids = event.type === 'ApprovalVoided' && asked.status === 'granted';
      if (asked.status !== 'pending' && !voids)
        return [violation(at, `${event.type} of approval ${approvalId}, which is closed`)];
      if (cancelled.has(asked.turnId))
        return [violation(at, `${event.type} of approval ${approvalId} after its turn was to be cancelled`)];
      if (event.type === 'ApprovalEscalated') return [];
      asked.status = event.type === 'ApprovalGranted' ? 'granted' : 'closed';
      return event.type === 'ApprovalGranted' && event.data.digest !== asked.digest
        ? [violation(at, `approval ${approvalId} was granted for another digest than was asked for`)]
        : [];
    };
    const request = ({ data }: SessionEventOf<'ToolCallRequested'>, at: EventPlace): Finding[] => {
      const asked = byCall.get(data.callId);
      if (!asked) return [];
      if (asked.status !== 'granted')
        return [violation(at, `call ${data.callId} was requested without the approval that it was to have`)];
      return asked.name === data.name && asked.input === JSON.stringify(data.input)
        ? []
        : [violation(at, `call ${data.callId} is not the one that was approved`)];
    };
    const complete = ({ data }: SessionEventOf<'ToolCallCompleted'>, at: EventPlace): Finding[] => {
      const asked = byCall.get(data.callId);
      return !asked || asked.moduleDigest === data.moduleDigest
        ? []
        : [violation(at, `call ${data.callId} was run by another module than was approved`)];
    };
    const end = (turnId: string): Finding[] => {
      for (const asked of byCall.values()) if (asked.turnId === turnId) asked.status = 'closed';
      return [];
    };
    const see = (event: SessionEvent, at: EventPlace): Finding[] => {
      if (isApproval(event)) return event.type === 'ApprovalRequested' ? ask(event, at) : answer(event, at);
      if (event.type === 'TurnCancelRequested') cancelled.add(event.data.turnId);
      if (event.type === 'ToolCallRequested') return request(event, at);
      if (event.type === 'ToolCallCompleted') return complete(event, at);
      return isTurnEnd(event.type) ? end((event.data as { turnId: string }).turnId) : [];
    };
    return {
      see: ({ place, content }) => see(content, place),
      end: () =>
        [...byCall.values()]
          .filter(({ status }) => status === 'pending')
          .map(({ at, callId }) => open(at, `nobody has answered the approval of call ${callId} yet`)),
      count: () => byCall.size,
    };
  },
};
