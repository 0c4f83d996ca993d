import type { SessionEvent } from '@antiphon/contracts/agent';
import { beginCommand, buildPrompt, NOTHING_IN_FLIGHT, followUps, nextStep } from '@antiphon/agent-domain';
import type {
  FollowUpContext,
  InFlight,
  SessionCommand,
  Step,
  ToolOutcome,
  TurnToolCall,
} from '@antiphon/agent-domain';
import { checkConversation } from './check-conversation.js';
import { askMetering, outcomeOf } from './metering-process.js';
import type { Fiber, Process } from './scheduler.js';
import { LEASE_TICKS, ask, decider } from './world.js';
import type { Appended, Lease, Session, World } from './world.js';

/** A driver's knowledge of the session that it has the lease of. */
interface Driver {
  readonly world: World;
  readonly process: Process;
  readonly session: Session;
  readonly lease: Lease;
  hands: InFlight;
}

const contextOf = (world: World, { id }: Session): FollowUpContext => ({
  decider,
  policy: world.policy,
  now: world.timeOfDay(),
  begins: 'any',
  // Of the attempt alone, as the agent names it by what is being named: a second driver asks for its own.
  reservationId: () => world.id(),
  toolRequest: ({ callId, name }) => ({
    ...{ callId, digest: `d-${id}`, idempotencyKey: callId, idempotent: name === 'safe' },
  }),
});

const withFollowUps = (world: World, session: Session, decided: SessionEvent[]): SessionEvent[] => {
  const next = decided.reduce(decider.evolve, session.state);
  return [...decided, ...followUps(next, contextOf(world, session))];
};

/** Decides on the state as it is, and appends when the answer is there; again where somebody else was faster. */
function* commit(driver: Driver, command: SessionCommand | null): Fiber<boolean> {
  const { world, session, lease } = driver;
  for (;;) {
    const version = session.events.length;
    const decided = withFollowUps(world, session, command ? decider.decide(command, session.state) : []);
    yield;
    const appended = world.store.append(session, version, decided, { lease });
    if (appended === 'fenced') return false;
    if (appended === 'conflict') continue;
    const calls = new Set(driver.hands.calls);
    let { attempt } = driver.hands;
    for (const event of decided) {
      if (event.type === 'ModelCallStarted') attempt = event.data.attempt;
      if (event.type === 'ToolCallRequested' || event.type === 'ToolCallClaimed')
        calls.add(event.data.callId);
    }
    driver.hands = { attempt, calls };
    yield;
    for (const event of decided) settle(driver, event);
    return true;
  }
}

/** Metering is told, and nobody waits for it. */
const settle = ({ world, process }: Driver, event: SessionEvent): void => {
  if (event.type !== 'ModelCallCompleted' && event.type !== 'ModelCallAborted') return;
  const { reservationId } = event.data;
  const tell = function* (): Fiber {
    yield* askMetering(world, { type: 'Settle', reservationId, outcome: outcomeOf(event) });
  };
  world.spawn(process, tell());
};

type Failure = Extract<SessionCommand, { type: 'RecordFailure' }>['data'];

const failure = (world: World, attempt: number, more: Partial<Failure>): SessionCommand => ({
  type: 'RecordFailure',
  data: {
    ...{ attempt, reason: 'provider_error', message: 'it failed', dispatched: true, retryable: true },
    ...{ text: '', thought: '', frames: [], usage: null, ...more },
  },
  now: world.timeOfDay(),
});

const INPUT_BOUND = 100;
const OUTPUT_BOUND = 200;

const answer = ({ choose, id, timeOfDay }: World, attempt: number): SessionCommand => ({
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

/** Null when the session is another's by now. */
function* callModel(driver: Driver, step: Extract<Step, { kind: 'run_call' }>): Fiber<SessionCommand | null> {
  const { world, session, lease } = driver;
  const { attempt, reservationId, turnId, provider, model } = step.call;
  const request = {
    ...{ workspace: 'default', reservationId, sessionId: session.id, turnId, attempt, agentId: 'main' },
    ...{ sessionKey: 'k', provider, model, inputBound: INPUT_BOUND, maxOutputTokens: OUTPUT_BOUND },
    ...{ minOutputTokens: 50, expiresAt: '2026-11-22T12:00:00.000Z' },
  };
  let granted: boolean | null = null;
  while (granted === null) {
    const reply = yield* askMetering(world, { type: 'Reserve', request });
    if (reply?.type === 'Reserve') granted = reply.reply.granted;
    // Only who has the session may wait for metering.
    else if (!world.store.confirm(session, lease)) return null;
  }
  if (!granted)
    return failure(world, attempt, { reason: 'budget_refused', dispatched: false, retryable: false });
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
  if (world.choose(4) === 0) return failure(world, attempt, { retryable: world.choose(3) > 0 });
  return answer(world, attempt);
}

const unknown = (turnId: string, { callId }: TurnToolCall): ToolOutcome => ({
  type: 'ToolCallUnknown',
  data: { turnId, callId, message: 'nobody knows' },
});
const completed = (turnId: string, { callId }: TurnToolCall): ToolOutcome => ({
  type: 'ToolCallCompleted',
  data: { turnId, callId, content: 'r', isError: false, moduleDigest: 'd', durationMs: 1 },
});
const tooLate = (turnId: string, { callId }: TurnToolCall): ToolOutcome => ({
  type: 'ToolCallFailed',
  data: { turnId, callId, code: 'TOOL.CANCELLED', message: 'cancelled before it ran' },
});

const record = (world: World, outcomes: readonly ToolOutcome[]): SessionCommand => ({
  type: 'RecordToolOutcomes',
  data: { outcomes },
  now: world.timeOfDay(),
});

/** Of this state, whether a call's claim is in the log. */
const isClaimed = ({ state }: Session, { callId }: TurnToolCall): boolean =>
  state.open?.steps.some(({ calls }) => calls.some((call) => call.callId === callId && call.claimed)) ??
  false;

/** One call, from its claim to its outcome; null when the session is another's by now. */
function* makeCall(driver: Driver, turnId: string, call: TurnToolCall): Fiber<ToolOutcome | null> {
  const { world, session, lease } = driver;
  // Claimed before: whoever did so has learned no outcome.
  if (!call.idempotent && call.claimed) return unknown(turnId, call);
  if (!call.idempotent) {
    const claim: SessionCommand = {
      type: 'ClaimTools',
      data: { turnId, callIds: [call.callId] },
      now: world.timeOfDay(),
    };
    if (!(yield* commit(driver, claim))) return null;
    if (!isClaimed(session, call)) return tooLate(turnId, call);
  }
  if (!world.store.confirm(session, lease)) return null;
  yield;
  const { reached } = world.outside;
  reached.set(call.callId, (reached.get(call.callId) ?? 0) + 1);
  yield;
  return world.choose(5) === 0 ? unknown(turnId, call) : completed(turnId, call);
}

function* runTools(driver: Driver, { turnId, calls }: Extract<Step, { kind: 'run_tools' }>): Fiber<boolean> {
  for (const call of calls) {
    const outcome = yield* makeCall(driver, turnId, call);
    if (!outcome || !(yield* commit(driver, record(driver.world, [outcome])))) return false;
  }
  return true;
}

/** Carries one step out; false when the session is another's by now. */
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
      return yield* commit(driver, failure(world, step.call.attempt, { reason: 'driver_lost' }));
    case 'run_tools':
      return yield* runTools(driver, step);
    case 'abandon_tools':
      return yield* commit(
        driver,
        record(
          world,
          step.calls.map((call) => unknown(step.turnId, call)),
        ),
      );
    case 'request_approvals':
    case 'await_approvals':
    case 'await_tools':
      throw new Error('nobody is to be asked here, and no call is put off');
    case 'request_tools':
    case 'complete':
    case 'cancel':
    case 'fail':
      return yield* commit(driver, null);
  }
}

function* driveOne(world: World, process: Process, session: Session, lease: Lease): Fiber {
  const driver: Driver = { world, process, session, lease, hands: NOTHING_IN_FLIGHT };
  for (;;) {
    yield;
    // Renewed as long as it is ours; a process that stood still finds it lapsed.
    if (!world.store.confirm(session, lease)) return;
    session.lease = { ...session.lease, until: world.now() + LEASE_TICKS };
    const step = nextStep(session.state, world.policy, driver.hands);
    if (step.kind === 'idle' || !(yield* perform(driver, step))) return;
  }
}

const ownerOf = ({ name, life }: Process): string => `${name}/${life}`;

/** Takes over sessions that have work and no driver, for as long as the process lives. */
export function* driveSessions(world: World, process: Process): Fiber {
  const free = (): Session[] =>
    [...world.store.sessions.values()].filter(
      ({ state, lease }) => state.open && (lease.until <= world.now() || lease.owner === ownerOf(process)),
    );
  for (;;) {
    yield { until: () => free().length > 0, patience: LEASE_TICKS };
    const [session] = free();
    const lease = session && world.store.acquire(session, ownerOf(process));
    if (session && lease) yield* driveOne(world, process, session, lease);
  }
}

/** What a client asks for: a turn, under a key; or that everything of the session is cancelled. */
export type Request = { readonly key: string; readonly session: string } | { readonly cancel: string };

function* accept(world: World, request: Request, told: (turnId: string) => void): Fiber {
  for (;;) {
    yield;
    const session = world.store.session('key' in request ? request.session : request.cancel);
    const version = session.events.length;
    const turnId = world.id();
    const command: SessionCommand =
      'key' in request
        ? { type: 'RequestTurn', data: { turnId, content: request.key }, now: world.timeOfDay() }
        : { type: 'CancelTurns', data: {}, now: world.timeOfDay() };
    const decided = decider.decide(command, session.state);
    yield;
    const claim = 'key' in request ? { claim: { key: request.key, turnId } } : {};
    const appended: Appended = world.store.append(session, version, decided, claim);
    if (appended === 'conflict' || appended === 'fenced') continue;
    yield;
    return told(appended.turnId);
  }
}

/** Sends a request to any agent until it is answered. */
export function* insist(world: World, request: Request): Fiber<string> {
  for (;;) {
    const agents = world.processes.filter(({ name, alive }) => alive && name.startsWith('agent'));
    const told = yield* ask<string>(
      world,
      () => agents[world.choose(Math.max(1, agents.length))],
      (_process, answered) => accept(world, request, answered),
    );
    if (told !== null) return told;
  }
}
