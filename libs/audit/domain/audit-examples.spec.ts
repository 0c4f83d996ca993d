// Examples for the specs of this folder; it contains no test itself.
import type { SessionEvent, SessionEventOf } from '@antiphon/contracts/agent';
import type { BudgetEvent, BudgetEventOf } from '@antiphon/contracts/metering';
import type { AuditCheck, EventPlace, Finding, Parsed } from './audit-check.js';

export const uuid = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
export const SESSION = uuid(900);
export const [TURN, SECOND, THIRD] = [uuid(1), uuid(2), uuid(3)] as [string, string, string];
export const TIME = '2026-11-21T10:00:00.000Z';
export const SESSION_STREAM = `session-${SESSION}`;

const event = <E extends SessionEvent | BudgetEvent>(type: E['type'], data: E['data']): E =>
  ({ type, schemaVersion: 1, data }) as E;

export const sessionStarted = (): SessionEvent =>
  event('SessionStarted', { sessionId: SESSION, sessionKey: 'k', agentId: 'main', startedAt: TIME });
export const turnRequested = (turnId = TURN): SessionEvent =>
  event('TurnRequested', { turnId, content: 'hello', requestedAt: TIME });
export const cancelRequested = (turnId = TURN): SessionEvent =>
  event('TurnCancelRequested', { turnId, requestedAt: TIME });
export const turnCompleted = (turnId = TURN): SessionEvent =>
  event('TurnCompleted', { turnId, completedAt: TIME });
export const turnCancelled = (turnId = TURN): SessionEvent =>
  event('TurnCancelled', { turnId, cancelledAt: TIME });

type Call = SessionEventOf<'ModelCallStarted'>['data'];
const call = (attempt: number, over: Partial<Call> = {}): Call => ({
  turnId: TURN,
  attempt,
  step: 1,
  tryNumber: 1,
  provider: 'p',
  model: 'm',
  reservationId: uuid(500 + attempt),
  startedAt: TIME,
  ...over,
});
export const callStarted = (attempt: number, over: Partial<Call> = {}): SessionEvent =>
  event('ModelCallStarted', call(attempt, over));

type Completed = SessionEventOf<'ModelCallCompleted'>['data'];
export const callCompleted = (
  attempt: number,
  over: Partial<Completed> = {},
): SessionEventOf<'ModelCallCompleted'> =>
  event('ModelCallCompleted', {
    ...call(attempt),
    text: 'hi you',
    thought: 'hm',
    frames: [
      { kind: 'text', length: 2 },
      { kind: 'thought', length: 2 },
      { kind: 'text', length: 4 },
    ],
    toolCalls: [],
    finishReason: 'stop',
    usage: { inputTokens: 90, outputTokens: 10, estimated: false },
    costMicroUsd: 420,
    completedAt: TIME,
    ...over,
  });
type Aborted = SessionEventOf<'ModelCallAborted'>['data'];
export const callAborted = (
  attempt: number,
  over: Partial<Aborted> = {},
): SessionEventOf<'ModelCallAborted'> =>
  event('ModelCallAborted', {
    ...call(attempt),
    reason: 'provider_timeout',
    cause: { kind: 'provider_timeout' },
    dispatched: true,
    retryable: true,
    text: '',
    thought: '',
    frames: [],
    usage: null,
    abortedAt: TIME,
    ...over,
  });

export const CALL_ID = uuid(700);
export const asksFor = (callId = CALL_ID): Completed['toolCalls'] => [
  { callId, providerCallId: 'c', name: 'echo', input: {} },
];
export const toolRequested = (callId = CALL_ID, attempt = 1): SessionEvent =>
  event('ToolCallRequested', {
    turnId: TURN,
    callId,
    attempt,
    name: 'echo',
    input: {},
    digest: 'd',
    idempotencyKey: callId,
    idempotent: true,
  });
/** Request of a tool that is not idempotent. */
export const onceRequested = (callId = CALL_ID): SessionEvent =>
  event('ToolCallRequested', {
    turnId: TURN,
    callId,
    attempt: 1,
    name: 'once',
    input: {},
    digest: 'd',
    idempotencyKey: callId,
    idempotent: false,
    claims: true,
  });
export const toolClaimed = (tryNumber = 1, callId = CALL_ID): SessionEvent =>
  event('ToolCallClaimed', { turnId: TURN, callId, tryNumber });
export const toolDeferred = (reason: 'unsent' | 'lost'): SessionEvent =>
  event('ToolCallDeferred', { turnId: TURN, callId: CALL_ID, reason, deferredAt: TIME, dueAt: TIME });
export const toolCompleted = (callId = CALL_ID): SessionEvent =>
  event('ToolCallCompleted', {
    turnId: TURN,
    callId,
    content: 'x',
    isError: false,
    moduleDigest: 'd',
    durationMs: 1,
  });

/** A session with tools, a retry, a turn that is cancelled before it starts, and a later turn. */
export const cleanSession = (): SessionEvent[] => [
  sessionStarted(),
  turnRequested(),
  callStarted(1),
  callCompleted(1, { toolCalls: asksFor() }),
  toolRequested(),
  turnRequested(SECOND),
  toolCompleted(),
  callStarted(2, { step: 2 }),
  callAborted(2, { step: 2 }),
  callStarted(3, { step: 2, tryNumber: 2 }),
  callCompleted(3, { step: 2 }),
  turnCompleted(),
  cancelRequested(SECOND),
  turnCancelled(SECOND),
  turnRequested(THIRD),
  // Number 4 belongs to the turn that ended without an attempt.
  callStarted(5, { turnId: THIRD }),
  callCompleted(5, { turnId: THIRD }),
  turnCompleted(THIRD),
];

export const PRICE = { inputMicroUsdPerMtok: 3_000_000, outputMicroUsdPerMtok: 15_000_000 };
type Reserved = BudgetEventOf<'BudgetReserved'>['data'];
export const reserved = (attempt: number, over: Partial<Reserved> = {}): BudgetEvent =>
  event('BudgetReserved', {
    reservationId: uuid(500 + attempt),
    sessionId: SESSION,
    turnId: TURN,
    attempt,
    agentId: 'main',
    sessionKey: 'k',
    provider: 'p',
    model: 'm',
    scopes: [
      { kind: 'session', key: `session/${SESSION}`, limitTokens: 1_000, limitMicroUsd: null },
      { kind: 'day', key: 'day/2026-11-21', limitTokens: null, limitMicroUsd: 10_000 },
    ],
    inputBound: 100,
    outputBound: 200,
    tokens: 300,
    microUsd: 3_300,
    price: PRICE,
    reservedAt: TIME,
    expiresAt: TIME,
    ...over,
  });
type Settled = BudgetEventOf<'BudgetSettled'>['data'];
export const settled = (attempt: number, over: Partial<Settled> = {}): BudgetEvent =>
  event('BudgetSettled', {
    reservationId: uuid(500 + attempt),
    inputTokens: 90,
    outputTokens: 10,
    microUsd: 420,
    estimated: false,
    settledAt: TIME,
    ...over,
  });
export const released = (attempt: number): BudgetEvent =>
  event('BudgetReleased', { reservationId: uuid(500 + attempt), reason: 'r', releasedAt: TIME });
export const expired = (attempt: number, tokens = 300): BudgetEvent =>
  event('BudgetExpired', { reservationId: uuid(500 + attempt), tokens, microUsd: 3_300, expiredAt: TIME });
type Corrected = BudgetEventOf<'BudgetCorrected'>['data'];
export const corrected = (
  attempt: number,
  outputTokens = 10,
  figure: Partial<NonNullable<Corrected['figure']>> | null = null,
): BudgetEvent =>
  event('BudgetCorrected', {
    reservationId: uuid(500 + attempt),
    inputTokens: 90,
    outputTokens,
    microUsd: 420,
    ...(figure === null
      ? {}
      : {
          figure: {
            ...{ generationId: 'gen-1', replacedTokens: 300, replacedMicroUsd: 3_300 },
            scopeKeys: [`session/${SESSION}`, 'day/2026-11-21'],
            ...figure,
          },
        }),
    correctedAt: TIME,
  });
export const scopeFrozen = (attempt: number): BudgetEvent =>
  event('BudgetScopeFrozen', {
    reservationId: uuid(500 + attempt),
    scopeKey: `session/${SESSION}`,
    boundTokens: 300,
    usedTokens: 400,
    boundMicroUsd: 0,
    usedMicroUsd: 0,
    frozenAt: TIME,
  });
export const scopeUnfrozen = (attempt: number): BudgetEvent =>
  event('BudgetScopeUnfrozen', {
    reservationId: uuid(500 + attempt),
    scopeKey: `session/${SESSION}`,
    by: 'op',
    reason: 'seen',
    unfrozenAt: TIME,
  });

const streamOf = (content: SessionEvent | BudgetEvent): string =>
  content.type.startsWith('Budget') && 'reservationId' in content.data
    ? `budget-${content.data.reservationId}`
    : SESSION_STREAM;

/** Assigns the places of an append in this order to events. */
export const place = <E extends SessionEvent | BudgetEvent>(events: readonly E[]): Parsed<E>[] => {
  const versions = new Map<string, number>();
  return events.map((content, index) => {
    const streamId = streamOf(content);
    const streamVersion = (versions.get(streamId) ?? 0) + 1;
    versions.set(streamId, streamVersion);
    const at: EventPlace = {
      position: index + 1,
      workspace: 'default',
      streamId,
      streamVersion,
      eventId: uuid(index + 1),
    };
    return { place: at, content, epoch: undefined };
  });
};

/** Runs a check over inputs and returns its findings as `kind position message`. */
export const findingsOf = <Input>(check: AuditCheck<Input>, inputs: readonly Input[]): string[] => {
  const run = check.start();
  const findings: Finding[] = inputs.flatMap((input) => run.see(input));
  return [...findings, ...run.end()].map(({ kind, at, message }) => `${kind} ${at.position} ${message}`);
};
