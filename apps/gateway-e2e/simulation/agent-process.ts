import { textCause } from '@antiphon/contracts/causes';
import type { SessionEvent } from '@antiphon/contracts/agent';
import type { ReserveBudgetRequest } from '@antiphon/contracts/metering';
import {
  beginCommand,
  buildPrompt,
  NOTHING_IN_FLIGHT,
  followUps,
  nextStep,
} from '@antiphon/conversation-domain';
import type {
  FollowUpContext,
  InFlight,
  SessionCommand,
  Step,
  ToolOutcome,
  TurnToolCall,
} from '@antiphon/conversation-domain';
import { checkConversation } from './invariants.js';
import { callMetering, outcomeOf, reserveInCommit, settleInCommit } from './metering-process.js';
import type { Fiber, Process } from './scheduler.js';
import { LEASE_TICKS, decider } from './world.js';
import type { Lease, Session, World } from './world.js';

/** The driver of one session, for as long as it holds the lease. */
interface Driver {
  readonly world: World;
  readonly process: Process;
  readonly session: Session;
  readonly lease: Lease;
  inFlight: InFlight;
  /** Reservations of this driver's own commits. */
  readonly reserved: Set<string>;
}

const STARTS_CALL = new Set(['ToolCallRequested', 'ToolCallClaimed', 'ToolCallRestarted']);

/** Returns the tool calls that the driver has itself from this event on. */
const startedBy = ({ type, data }: SessionEvent): readonly string[] => {
  if (type === 'ModelCallCompleted') return data.toolCalls.map(({ callId }) => callId);
  return STARTS_CALL.has(type) && 'callId' in data ? [data.callId] : [];
};

const contextOf = (world: World, { id }: Session): FollowUpContext => ({
  decider,
  policy: world.policy,
  now: world.timeOfDay(),
  begins: 'any',
  // Each driver makes a reservation of its own.
  reservationId: () => world.id(),
  toolRequest: ({ callId, name }) => ({
    ...{ callId, digest: `d-${id}`, idempotencyKey: callId, idempotent: name === 'safe' },
  }),
});

const withFollowUps = (world: World, session: Session, decided: SessionEvent[]): SessionEvent[] => {
  const next = decided.reduce(decider.evolve, session.state);
  return [...decided, ...followUps(next, contextOf(world, session))];
};

/**
 * Decides on the current state and appends. Retries after a version conflict. Returns false when
 * fenced.
 */
function* commit(driver: Driver, command: SessionCommand | null): Fiber<boolean> {
  const { world, session, lease } = driver;
  for (;;) {
    const version = session.events.length;
    const decided = withFollowUps(world, session, command ? decider.decide(command, session.state) : []);
    yield;
    const appended = world.store.append(session, version, decided, { lease });
    if (appended === 'fenced') return false;
    if (appended === 'conflict') continue;
    const settled = settleInCommit(world, decided);
    for (const event of decided)
      if (event.type === 'ModelCallStarted' && reserveInCommit(world, requestOf(session, event.data)))
        driver.reserved.add(event.data.reservationId);
    const calls = new Set(driver.inFlight.calls);
    let { attempt } = driver.inFlight;
    for (const event of decided) {
      if (event.type === 'ModelCallStarted') attempt = event.data.attempt;
      for (const callId of startedBy(event)) calls.add(callId);
    }
    driver.inFlight = { attempt, calls };
    yield;
    for (const event of decided) settle(driver, event, settled);
    return true;
  }
}

/**
 * Sends a settlement that the commit left out to metering, and does not wait for its answer.
 */
const settle = ({ world, process }: Driver, event: SessionEvent, settled: ReadonlySet<string>): void => {
  if (event.type !== 'ModelCallCompleted' && event.type !== 'ModelCallAborted') return;
  const { reservationId } = event.data;
  if (settled.has(reservationId)) return;
  const send = function* (): Fiber {
    yield* callMetering(world, { type: 'Settle', reservationId, outcome: outcomeOf(event) });
  };
  world.spawn(process, send());
};

type Failure = Extract<SessionCommand, { type: 'RecordFailure' }>['data'];

const failureCommand = (world: World, attempt: number, more: Partial<Failure>): SessionCommand => ({
  type: 'RecordFailure',
  data: {
    ...{
      attempt,
      reason: 'provider_error',
      cause: textCause('it failed'),
      dispatched: true,
      retryable: true,
    },
    ...{ text: '', thought: '', frames: [], usage: null, ...more },
  },
  now: world.timeOfDay(),
});

const INPUT_BOUND = 100;
const OUTPUT_BOUND = 200;

type Call = Pick<ReserveBudgetRequest, 'reservationId' | 'turnId' | 'attempt' | 'provider' | 'model'>;

const requestOf = (
  { id }: Session,
  { attempt, reservationId, turnId, provider, model }: Call,
): ReserveBudgetRequest => ({
  ...{ workspace: 'default', reservationId, sessionId: id, turnId, attempt, agentId: 'main' },
  ...{ sessionKey: 'k', provider, model, inputBound: INPUT_BOUND, maxOutputTokens: OUTPUT_BOUND },
  ...{ minOutputTokens: 50, expiresAt: '2026-11-22T12:00:00.000Z' },
});

const answerCommand = ({ choose, id, timeOfDay }: World, attempt: number): SessionCommand => ({
  type: 'RecordAnswer',
  data: {
    ...{
      attempt,
      text: 'x'.repeat(choose(3)),
      thought: '',
      frames: [],
      finishReason: 'stop',
      costMicroUsd: null,
    },
    toolCalls: Array.from({ length: choose(3) }, () => ({
      ...{ callId: id(), providerCallId: 'call', name: choose(2) === 0 ? 'safe' : 'unsafe', input: {} },
    })),
    usage: { inputTokens: choose(INPUT_BOUND), outputTokens: choose(OUTPUT_BOUND), estimated: false },
  },
  now: timeOfDay(),
});

/** Reserves the budget and calls the model. Returns null when another driver owns the session. */
function* callModel(driver: Driver, step: Extract<Step, { kind: 'run_call' }>): Fiber<SessionCommand | null> {
  const { world, session, lease } = driver;
  const { attempt, reservationId } = step.call;
  const request = requestOf(session, step.call);
  let granted: boolean | null = driver.reserved.has(reservationId) ? true : null;
  while (granted === null) {
    const reply = yield* callMetering(world, { type: 'Reserve', request });
    if (reply?.type === 'Reserve') granted = reply.reply.granted;
    // Only the owner of the session may wait for metering.
    else if (!world.store.confirm(session, lease)) return null;
  }
  if (!granted)
    return failureCommand(world, attempt, { reason: 'budget_refused', dispatched: false, retryable: false });
  yield;
  if (!world.store.confirm(session, lease)) return null;
  const { open } = session.state;
  if (!open) return null;
  checkConversation(
    world,
    buildPrompt(session.state, open, {
      ...{ choice: step.call, systemPrompt: null, remembered: { soul: null, facts: [] }, tools: [] },
      ...{ window: 3, contextTokens: 600 },
    }).messages,
  );
  yield;
  world.outside.billed.push({ session: session.id, attempt, reservationId });
  yield;
  if (world.choose(4) === 0) return failureCommand(world, attempt, { retryable: world.choose(3) > 0 });
  return answerCommand(world, attempt);
}

const unknownOutcome = (turnId: string, { callId }: TurnToolCall): ToolOutcome => ({
  type: 'ToolCallUnknown',
  data: { turnId, callId, cause: textCause('the outcome is unknown') },
});
const completedOutcome = (turnId: string, { callId }: TurnToolCall): ToolOutcome => ({
  type: 'ToolCallCompleted',
  data: { turnId, callId, content: 'r', isError: false, moduleDigest: 'd', durationMs: 1 },
});
const cancelledOutcome = (turnId: string, { callId }: TurnToolCall): ToolOutcome => ({
  type: 'ToolCallFailed',
  data: { turnId, callId, code: 'TOOL.CANCELLED', cause: textCause('cancelled before it ran') },
});

const lostOutcome = (turnId: string, { callId }: TurnToolCall): ToolOutcome => ({
  type: 'ToolCallFailed',
  data: { turnId, callId, code: 'TOOL.DRIVER_LOST', cause: textCause('its processes were lost') },
});

const recordCommand = (world: World, outcomes: readonly ToolOutcome[]): SessionCommand => ({
  type: 'RecordToolOutcomes',
  data: { outcomes },
  now: world.timeOfDay(),
});

/** Returns true when the claim of the call is in the log. */
const isClaimed = ({ state }: Session, { callId }: TurnToolCall): boolean =>
  state.open?.steps.some(({ calls }) => calls.some((call) => call.callId === callId && call.claimed)) ??
  false;

/**
 * Makes one call, from its claim to its outcome. Returns null when another driver owns the session.
 */
function* makeCall(driver: Driver, turnId: string, call: TurnToolCall): Fiber<ToolOutcome | null> {
  const { world, session, lease } = driver;
  // An earlier driver claimed the call and recorded no outcome.
  if (!call.idempotent && call.claimed) return unknownOutcome(turnId, call);
  if (!call.idempotent) {
    const claim: SessionCommand = {
      type: 'ClaimTools',
      data: { turnId, callIds: [call.callId] },
      now: world.timeOfDay(),
    };
    if (!(yield* commit(driver, claim))) return null;
    if (!isClaimed(session, call)) return cancelledOutcome(turnId, call);
  }
  if (!world.store.confirm(session, lease)) return null;
  yield;
  const { toolCalls } = world.outside;
  toolCalls.set(call.callId, (toolCalls.get(call.callId) ?? 0) + 1);
  yield;
  return world.choose(5) === 0 ? unknownOutcome(turnId, call) : completedOutcome(turnId, call);
}

function* runTools(driver: Driver, { turnId, calls }: Extract<Step, { kind: 'run_tools' }>): Fiber<boolean> {
  for (const call of calls) {
    const outcome = yield* makeCall(driver, turnId, call);
    if (!outcome || !(yield* commit(driver, recordCommand(driver.world, [outcome])))) return false;
  }
  return true;
}

/** Performs one step. Returns false when another driver owns the session. */
function* perform(driver: Driver, step: Exclude<Step, { kind: 'idle' }>): Fiber<boolean> {
  const { world, session } = driver;
  switch (step.kind) {
    case 'begin_call':
      return yield* commit(driver, beginCommand(step, session.state, contextOf(world, session)));
    case 'run_call': {
      const command = yield* callModel(driver, step);
      return command !== null && (yield* commit(driver, command));
    }
    case 'abandon_call':
      return yield* commit(driver, failureCommand(world, step.call.attempt, { reason: 'driver_lost' }));
    case 'run_tools':
      return yield* runTools(driver, step);
    case 'abandon_tools':
      return yield* commit(
        driver,
        recordCommand(
          world,
          step.calls.map((call) => unknownOutcome(step.turnId, call)),
        ),
      );
    case 'restart_tools': {
      const callIds = step.calls.map(({ callId }) => callId);
      const data = { turnId: step.turnId, callIds };
      return yield* commit(driver, { type: 'RestartTools', data, now: world.timeOfDay() });
    }
    case 'fail_tools':
      return yield* commit(
        driver,
        recordCommand(
          world,
          step.calls.map((call) => lostOutcome(step.turnId, call)),
        ),
      );
    case 'request_approvals':
    case 'await_approvals':
    case 'await_tools':
    case 'await_resume':
      throw new Error('the simulation has no approvals, pauses no agent and defers no call');
    default:
      return yield* commit(driver, null);
  }
}

function* driveOne(world: World, process: Process, session: Session, lease: Lease): Fiber {
  const driver: Driver = { world, process, session, lease, inFlight: NOTHING_IN_FLIGHT, reserved: new Set() };
  for (;;) {
    yield;
    // The lease of a process that was paused has lapsed.
    if (!world.store.confirm(session, lease)) return;
    session.lease = { ...session.lease, until: world.now() + LEASE_TICKS };
    const step = nextStep(session.state, world.policy, driver.inFlight);
    if (step.kind === 'idle' || !(yield* perform(driver, step))) return;
  }
}

const ownerOf = ({ name, life }: Process): string => `${name}/${life}`;

/** Takes over sessions that have work and no driver, while the process lives. */
export function* driveSessions(world: World, process: Process): Fiber {
  const free = (): Session[] =>
    [...world.store.sessions.values()].filter(
      ({ state, lease }) => state.open && (lease.until <= world.now() || lease.owner === ownerOf(process)),
    );
  for (;;) {
    yield { until: () => free().length > 0, timeout: LEASE_TICKS };
    const [session] = free();
    const lease = session && world.store.acquire(session, ownerOf(process));
    if (session && lease) yield* driveOne(world, process, session, lease);
  }
}
