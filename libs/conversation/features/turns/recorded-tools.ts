import { isTurnEnd, sessionStream } from '@antiphon/contracts/agent';
import type { SessionEvent } from '@antiphon/contracts/agent';
import { NOT_RECORDED, editNote } from '@antiphon/conversation-domain';
import type { Fork, ToolOutcome, TurnToolCall } from '@antiphon/conversation-domain';
import type { EventStore } from '@antiphon/event-store';
import type { JsonValue } from '@antiphon/kernel';
import { toFolded } from '../sessions/session-log.js';
import { toolDigestOf } from '@antiphon/agent-log';
import type { SessionActor } from '../sessions/session-actor.js';

type Outcome = Extract<SessionEvent, { type: 'ToolCallCompleted' | 'ToolCallFailed' | 'ToolCallUnknown' }>;

type Refusal = Extract<SessionEvent, { type: 'ApprovalDenied' | 'ApprovalExpired' | 'ApprovalVoided' }>;

/** A tool call of the origin, with its outcome. */
interface RecordedCall {
  readonly name: string;
  readonly input: JsonValue;
  /** Digest of the arguments that the model asked for: a what-if asks for these again. */
  readonly digest: string;
  /** Arguments that the approver changed them to; undefined for a call as requested. */
  edited?: JsonValue;
  outcome: Outcome | null;
}

const PAGE = 500;
const MAX_SHOWN = 5;
const OUTCOMES: ReadonlySet<string> = new Set(['ToolCallCompleted', 'ToolCallFailed', 'ToolCallUnknown']);

const REFUSALS: ReadonlySet<string> = new Set(['ApprovalDenied', 'ApprovalExpired', 'ApprovalVoided']);

const isOutcome = (event: SessionEvent): event is Outcome => OUTCOMES.has(event.type);

const isRefusal = (event: SessionEvent): event is Refusal => REFUSALS.has(event.type);

/** Converts a refused approval to the outcome of its call, which was never made. */
const toDenied = ({ data: { turnId, callId, cause } }: Refusal): Outcome => ({
  type: 'ToolCallFailed',
  schemaVersion: 2,
  data: { turnId, callId, code: 'TOOL.DENIED', cause },
});

const trackCall = (calls: Map<string, RecordedCall>, event: SessionEvent): void => {
  if (event.type === 'ToolCallRequested' || event.type === 'ApprovalRequested') {
    const { callId, name, input } = event.data;
    if (!calls.has(callId))
      calls.set(callId, { name, input, digest: toolDigestOf(name, input), outcome: null });
  }
  if (event.type === 'ApprovalGranted' && event.data.edited) {
    const granted = calls.get(event.data.callId);
    if (granted) granted.edited = event.data.edited.input;
  }
  const outcome = isRefusal(event) ? toDenied(event) : isOutcome(event) ? event : null;
  const call = outcome && calls.get(outcome.data.callId);
  if (call) call.outcome = outcome;
};

/**
 * Reads the tool calls of one turn of the origin, in the order in which the model requested them.
 */
const callsOfTurn = async (
  store: EventStore,
  workspace: string,
  { origin }: Fork,
  turnId: string,
): Promise<readonly RecordedCall[]> => {
  const calls = new Map<string, RecordedCall>();
  const stream = sessionStream(origin.sessionId);
  for (let after = origin.version; ;) {
    const { events, hasMore } = await store.readStreamPage(workspace, stream, {
      ...{ fromVersion: after + 1, limit: PAGE },
    });
    for (const { event } of events.map(toFolded)) {
      if (!('turnId' in event.data) || event.data.turnId !== turnId) continue;
      if (isTurnEnd(event.type)) return [...calls.values()];
      trackCall(calls, event);
    }
    if (!hasMore) return [...calls.values()];
    after += events.length;
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
  const cause = { kind: 'tool_not_recorded', call: show(call), of: of ?? null, recorded: known } as const;
  return { type: 'ToolCallFailed', data: { turnId, callId: call.callId, code: NOT_RECORDED, cause } };
};

/** The model of a what-if reads as well that a person changed the arguments. */
const noteEdit = (outcome: Outcome, { edited }: RecordedCall): Outcome =>
  edited === undefined || outcome.type !== 'ToolCallCompleted'
    ? outcome
    : { ...outcome, data: { ...outcome.data, content: editNote(edited) + outcome.data.content } };

const withIds = ({ type, data }: Outcome, turnId: string, callId: string): ToolOutcome =>
  ({ type, data: { ...data, turnId, callId } }) as ToolOutcome;

/**
 * Returns the recorded outcome of a what-if's tool call: that of the same call (name and arguments)
 * of the turn that is run again. The first such call gets the first outcome, and so on. Without a
 * recorded call the outcome is a failure.
 */
export const recordedOutcome = async (
  store: EventStore,
  actor: SessionActor,
  fork: Fork,
  turnId: string,
  call: TurnToolCall,
): Promise<ToolOutcome> => {
  const of = fork.remakes[turnId];
  const recorded = of === undefined ? [] : await callsOfTurn(store, actor.workspace, fork, of);
  const digest = toolDigestOf(call.name, call.input);
  const { open } = actor.fold().state;
  const requested = (open?.steps ?? [])
    .flatMap(({ calls }) => calls)
    .filter(({ name, input }) => toolDigestOf(name, input) === digest);
  const place = requested.findIndex(({ callId }) => callId === call.callId);
  const found = recorded.filter((candidate) => candidate.digest === digest)[place];
  return found?.outcome
    ? withIds(noteEdit(found.outcome, found), turnId, call.callId)
    : notRecorded(turnId, call, recorded, of);
};
