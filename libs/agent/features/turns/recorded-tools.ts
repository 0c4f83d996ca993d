import { isTurnEnd, sessionStream } from '@antiphon/contracts/agent';
import type { SessionEvent } from '@antiphon/contracts/agent';
import { NOT_RECORDED } from '@antiphon/agent-domain';
import type { Fork, ToolOutcome, TurnToolCall } from '@antiphon/agent-domain';
import type { EventStore } from '@antiphon/event-store';
import type { JsonValue } from '@antiphon/kernel';
import { toFolded } from '../sessions/session-log.js';
import { toolDigestOf } from '../derived-ids.js';
import type { StepContext } from './step-context.js';

export interface RecordedToolsDeps {
  readonly store: EventStore;
}

type Outcome = Extract<SessionEvent, { type: 'ToolCallCompleted' | 'ToolCallFailed' | 'ToolCallUnknown' }>;

type Refusal = Extract<SessionEvent, { type: 'ApprovalDenied' | 'ApprovalExpired' | 'ApprovalVoided' }>;

/** A tool call of the origin, and what came of it. */
interface RecordedCall {
  readonly name: string;
  readonly input: JsonValue;
  readonly digest: string;
  outcome: Outcome | null;
}

const PAGE = 500;
const MAX_SHOWN = 5;
const OUTCOMES: ReadonlySet<string> = new Set(['ToolCallCompleted', 'ToolCallFailed', 'ToolCallUnknown']);

const REFUSALS: ReadonlySet<string> = new Set(['ApprovalDenied', 'ApprovalExpired', 'ApprovalVoided']);

const isOutcome = (event: SessionEvent): event is Outcome => OUTCOMES.has(event.type);

const isRefusal = (event: SessionEvent): event is Refusal => REFUSALS.has(event.type);

/** A call that nobody agreed to was never made; that it was refused, and with which words, is what came of it. */
const refused = ({ data: { turnId, callId, message } }: Refusal): Outcome => ({
  type: 'ToolCallFailed',
  schemaVersion: 1,
  data: { turnId, callId, code: 'TOOL.DENIED', message },
});

const note = (calls: Map<string, RecordedCall>, event: SessionEvent): void => {
  if (event.type === 'ToolCallRequested' || event.type === 'ApprovalRequested') {
    const { callId, name, input } = event.data;
    calls.set(callId, { name, input, digest: toolDigestOf(name, input), outcome: null });
  }
  const outcome = isRefusal(event) ? refused(event) : isOutcome(event) ? event : null;
  const call = outcome && calls.get(outcome.data.callId);
  if (call) call.outcome = outcome;
};

/** The tool calls of one turn of the origin, in the order in which they were asked for. */
const callsOfTurn = async (
  { services, actor }: StepContext,
  { origin }: Fork,
  turnId: string,
): Promise<readonly RecordedCall[]> => {
  const calls = new Map<string, RecordedCall>();
  for (let after = origin.version; ; after += PAGE) {
    const options = { fromVersion: after + 1, limit: PAGE };
    const stream = sessionStream(origin.sessionId);
    const page = (await services.store.readStream(actor.workspace, stream, options)).map(toFolded);
    for (const { event } of page) {
      if (!('turnId' in event.data) || event.data.turnId !== turnId) continue;
      if (isTurnEnd(event.type)) return [...calls.values()];
      note(calls, event);
    }
    if (page.length < PAGE) return [...calls.values()];
  }
};

const show = ({ name, input }: Pick<RecordedCall, 'name' | 'input'>): string =>
  `${name} ${JSON.stringify(input).slice(0, 200)}`;

const notRecorded = (
  turnId: string,
  call: TurnToolCall,
  recorded: readonly RecordedCall[],
  of: string | undefined,
): ToolOutcome => {
  const known = recorded.slice(0, MAX_SHOWN).map(show).join(', ');
  const has = known === '' ? 'which has none' : `which has ${known}`;
  const whose = of === undefined ? 'this turn is made again of none' : `of turn ${of}, ${has}`;
  const message = `the model asked for ${show(call)}, which is not in the record: ${whose}. A what-if makes no tool call of its own`;
  return { type: 'ToolCallFailed', data: { turnId, callId: call.callId, code: NOT_RECORDED, message } };
};

const again = ({ type, data }: Outcome, turnId: string, callId: string): ToolOutcome =>
  ({ type, data: { ...data, turnId, callId } }) as ToolOutcome;

/**
 * What the origin's record answers to a tool call of a what-if: the outcome of the same call (name and arguments) of
 * the turn that this one is made again of, the first of them to the first and so on; a failure where there is none.
 */
export const recordedOutcome = async (
  work: StepContext,
  fork: Fork,
  turnId: string,
  call: TurnToolCall,
): Promise<ToolOutcome> => {
  const of = fork.remakes[turnId];
  const recorded = of === undefined ? [] : await callsOfTurn(work, fork, of);
  const digest = toolDigestOf(call.name, call.input);
  const { open } = work.actor.fold().state;
  const asked = (open?.steps ?? [])
    .flatMap(({ calls }) => calls)
    .filter(({ name, input }) => toolDigestOf(name, input) === digest);
  const place = asked.findIndex(({ callId }) => callId === call.callId);
  const found = recorded.filter((candidate) => candidate.digest === digest)[place]?.outcome;
  return found ? again(found, turnId, call.callId) : notRecorded(turnId, call, recorded, of);
};
