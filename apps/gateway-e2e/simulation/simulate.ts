import fc from 'fast-check';
import type { SessionCommand } from '@antiphon/conversation-domain';
import type { BudgetLimits } from '@antiphon/metering-domain';
import { driveSessions } from './agent-process.js';
import { violationsOf } from './invariants.js';
import { sweepReservations } from './metering-process.js';
import type { Choose, Fiber, Process } from './scheduler.js';
import { LEASE_TICKS, createWorld, decider, sendRequest } from './world.js';
import type { Appended, World } from './world.js';

const SESSIONS = ['s1', 's2'];
const COMMANDS = 4;
/** Faults in a hundred steps. */
const FAULTS_PERCENT = 3;
const MAX_STEPS = 20_000;

const startProcess = (world: World, name: string, life: number): void => {
  const process: Process = { name, life, alive: true, pausedUntil: 0 };
  world.processes.push(process);
  if (name !== 'metering') world.spawn(process, driveSessions(world, process));
};

/** Kills a process with its fibers. Its leases lapse, unless the supervisor releases them. */
const kill = (world: World, process: Process): void => {
  process.alive = false;
  const owner = `${process.name}/${process.life}`;
  if (world.choose(2) === 0)
    for (const session of world.store.sessions.values())
      if (session.lease.owner === owner) session.lease = { ...session.lease, until: world.now() };
  startProcess(world, process.name, process.life + 1);
};

const injectFault = (world: World): void => {
  const alive = world.processes.filter((process) => process.alive);
  const process = alive[world.choose(alive.length)];
  if (!process) return;
  if (world.choose(2) === 0) kill(world, process);
  else process.pausedUntil = world.now() + world.choose(3 * LEASE_TICKS);
};

/**
 * Request of a client: a turn with an idempotency key, or the cancellation of a session's turns.
 */
type Request = { readonly key: string; readonly session: string } | { readonly cancel: string };

function* handleRequest(world: World, request: Request, answer: (turnId: string) => void): Fiber {
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
    return answer(appended.turnId);
  }
}

/** Sends a request to any agent until it is answered. */
function* sendUntilAnswered(world: World, request: Request): Fiber<string> {
  for (;;) {
    const agents = world.processes.filter(({ name, alive }) => alive && name.startsWith('agent'));
    const turnId = yield* sendRequest<string>(
      world,
      () => agents[world.choose(Math.max(1, agents.length))],
      (_process, answer) => handleRequest(world, request, answer),
    );
    if (turnId !== null) return turnId;
  }
}

/** Sends each command until it is answered, some of them twice, and cancels now and then. */
function* useSession(world: World, session: string): Fiber {
  for (let i = 1; i <= COMMANDS; i++) {
    const key = `${session}/${i}`;
    const times = 1 + (world.choose(4) === 0 ? 1 : 0);
    for (let time = 0; time < times; time++) {
      const turnId = yield* sendUntilAnswered(world, { key, session });
      world.answers.set(key, (world.answers.get(key) ?? new Set()).add(turnId));
    }
    if (world.choose(5) === 0) yield* sendUntilAnswered(world, { cancel: session });
  }
}

const hasOpenTurns = ({ store }: World): boolean =>
  [...store.sessions.values()].some(({ state }) => state.open);

const runUntil = (world: World, isOver: () => boolean): void => {
  for (let steps = 0; !isOver(); steps++) {
    if (steps > MAX_STEPS) throw new Error(`no end after ${MAX_STEPS} steps`);
    if (world.chaos && world.choose(100) < FAULTS_PERCENT) injectFault(world);
    if (!world.step()) return;
  }
};

/**
 * Runs two agents, metering and two clients with crashes and pauses, then lets them finish without
 * faults.
 */
const simulate = (choose: Choose, limits: BudgetLimits): World => {
  const world = createWorld(choose, limits);
  for (const name of ['agent-1', 'agent-2', 'metering']) startProcess(world, name, 1);
  const outside: Process = { name: 'clients', life: 1, alive: true, pausedUntil: 0 };
  let left = SESSIONS.length;
  const client = function* (session: string): Fiber {
    yield* useSession(world, session);
    left--;
  };
  for (const session of SESSIONS) world.spawn(outside, client(session));
  runUntil(world, () => left === 0);
  world.chaos = false;
  for (const process of world.processes) process.pausedUntil = 0;
  runUntil(world, () => !hasOpenTurns(world));
  let swept = false;
  const sweep = function* (): Fiber {
    yield* sweepReservations(world);
    swept = true;
  };
  world.spawn(outside, sweep());
  runUntil(world, () => swept);
  return world;
};

const limits = fc.record<BudgetLimits>({
  session: fc.constantFrom(null, 1_500),
  daily: fc.constantFrom(null, 3_000, 800),
  monthly: fc.constant(null),
  sessionMicroUsd: fc.constant(null),
  dailyMicroUsd: fc.constant(null),
  monthlyMicroUsd: fc.constant(null),
});

/**
 * Runs random simulations. Throws when one breaks an invariant, with the seed and the path that
 * repeat it (`ANTIPHON_TEST_SEED`; without it, every run is different).
 */
export const checkSimulations = (numRuns: number, seed = process.env['ANTIPHON_TEST_SEED']): void =>
  fc.assert(
    fc.property(fc.infiniteStream(fc.nat()), limits, (choices, limit) => {
      const numbers = choices[Symbol.iterator]();
      const world = simulate((bound) => (numbers.next().value as number) % bound, limit);
      const violations = violationsOf(world);
      if (violations.length > 0) throw new Error(violations.join('\n'));
    }),
    { numRuns, ...(seed === undefined ? {} : { seed: Number(seed) }) },
  );
