import type { SessionEvent, SessionEventOf } from '@antiphon/contracts/agent';
import { open, violation } from '../audit-check.js';
import type { EventPlace, Finding, SessionCheck } from '../audit-check.js';

type Requested = SessionEventOf<'ToolCallRequested'>['data'];
type Deferred = SessionEventOf<'ToolCallDeferred'>['data'];
type Outcome = SessionEventOf<'ToolCallCompleted' | 'ToolCallFailed' | 'ToolCallUnknown'>;

interface Waiting {
  readonly turnId: string;
  readonly at: EventPlace;
  /** Whether the tool may only be reached after a claim. */
  readonly claims: boolean;
  claimed: boolean;
  readonly idempotent: boolean;
  /** Tries that may have reached the tool, and more of which are to come. */
  repeated: number;
  readonly maxAttempts: number;
}

/** Of an idempotent tool that declares nothing. */
const DEFAULT_ATTEMPTS = 3;

/** Every tool call that was requested has exactly one outcome, after the request and before the next model call; what must be claimed first was. */
export const toolCallsHaveOneOutcome: SessionCheck = {
  name: 'tool-calls-have-one-outcome',
  about:
    'every requested tool call was asked for by a model and has exactly one outcome, before the next model call',
  counts: 'tool calls',
  start: () => {
    /** What the newest answer of a model asked for. */
    let asked: { attempt: number; callIds: ReadonlySet<string> } = { attempt: 0, callIds: new Set() };
    const waiting = new Map<string, Waiting>();
    const done = new Set<string>();
    let calls = 0;

    const request = (data: Requested, at: EventPlace): Finding[] => {
      const { callId, turnId, attempt, claims = false, idempotent, retry } = data;
      if (waiting.has(callId) || done.has(callId))
        return [violation(at, `tool call ${callId} was requested twice`)];
      const maxAttempts = retry?.maxAttempts ?? DEFAULT_ATTEMPTS;
      waiting.set(callId, { turnId, at, claims, claimed: false, idempotent, repeated: 0, maxAttempts });
      calls++;
      return attempt === asked.attempt && asked.callIds.has(callId)
        ? []
        : [violation(at, `tool call ${callId} was not asked for by model attempt ${attempt}`)];
    };
    const claim = (callId: string, at: EventPlace): Finding[] => {
      const call = waiting.get(callId);
      if (!call) return [violation(at, `tool call ${callId} is claimed, but waits for no outcome`)];
      if (call.claimed) return [violation(at, `tool call ${callId} is claimed twice for one try`)];
      call.claimed = true;
      return [];
    };
    const defer = ({ callId, reason }: Deferred, at: EventPlace): Finding[] => {
      const call = waiting.get(callId);
      if (!call) return [violation(at, `tool call ${callId} is put off, but waits for no outcome`)];
      call.claimed = false;
      if (reason === 'unsent') return [];
      call.repeated++;
      if (!call.idempotent)
        return [violation(at, `tool call ${callId} may have run, and is to be made again all the same`)];
      return call.repeated < call.maxAttempts
        ? []
        : [violation(at, `tool call ${callId} is to be made more than ${call.maxAttempts} times`)];
    };
    const settle = ({ type, data: { callId } }: Outcome, at: EventPlace): Finding[] => {
      if (done.has(callId)) return [violation(at, `tool call ${callId} has a second outcome`)];
      done.add(callId);
      const call = waiting.get(callId);
      if (!call) return [violation(at, `tool call ${callId} has an outcome and no request`)];
      waiting.delete(callId);
      // One that failed may have reached nobody.
      return call.claims && !call.claimed && type !== 'ToolCallFailed'
        ? [violation(at, `tool call ${callId} was made without a claim`)]
        : [];
    };
    const nothingWaits = (what: string, at: EventPlace): Finding[] =>
      [...waiting.keys()].map((callId) =>
        violation(at, `${what} before tool call ${callId} had its outcome`),
      );

    const see = (place: EventPlace, event: SessionEvent): Finding[] => {
      switch (event.type) {
        case 'ModelCallStarted':
          return nothingWaits(`model attempt ${event.data.attempt} began`, place);
        case 'ModelCallCompleted':
          asked = {
            attempt: event.data.attempt,
            callIds: new Set(event.data.toolCalls.map(({ callId }) => callId)),
          };
          return [];
        case 'ToolCallRequested':
          return request(event.data, place);
        case 'ToolCallClaimed':
          return claim(event.data.callId, place);
        case 'ToolCallDeferred':
          return defer(event.data, place);
        case 'ToolCallCompleted':
        case 'ToolCallFailed':
        case 'ToolCallUnknown':
          return settle(event, place);
        case 'TurnCompleted':
        case 'TurnFailed':
        case 'TurnCancelled':
          return nothingWaits(`turn ${event.data.turnId} ended`, place);
        default:
          return [];
      }
    };
    return {
      see: ({ place, content }) => see(place, content),
      end: () => [...waiting].map(([callId, { at }]) => open(at, `tool call ${callId} has no outcome yet`)),
      count: () => calls,
    };
  },
};
