import type { SessionEvent } from '@antiphon/contracts/agent';
import type { BudgetEvent } from '@antiphon/contracts/metering';
import { sessionDecider } from '@antiphon/conversation-domain';
import type { AgentPolicy, SessionState } from '@antiphon/conversation-domain';
import { ledgerFrom } from '@antiphon/metering-domain';
import type { BudgetLimits } from '@antiphon/metering-domain';
import { createScheduler } from './scheduler.js';
import type { Choose, Fiber, Process, Scheduler } from './scheduler.js';

export const decider = sessionDecider({ turns: 3, chars: 4_000 });

export interface Lease {
  readonly owner: string;
  readonly epoch: number;
  readonly until: number;
}

/**
 * An event with the epoch of the driver that wrote it (null: not a driver) and the session's epoch
 * at that time.
 */
export interface Written {
  readonly event: SessionEvent;
  readonly epoch: number | null;
  readonly current: number;
}

export interface Session {
  readonly id: string;
  readonly events: Written[];
  state: SessionState;
  lease: Lease;
}

export type Appended =
  { readonly outcome: 'appended' | 'joined'; readonly turnId: string } | 'conflict' | 'fenced';

export interface AppendOptions {
  readonly lease?: Lease;
  readonly claim?: { readonly key: string; readonly turnId: string };
}

export interface Store {
  readonly sessions: ReadonlyMap<string, Session>;
  session(id: string): Session;
  /** Checks version, lease and idempotency key, and appends, in one transaction. */
  append(
    session: Session,
    version: number,
    events: readonly SessionEvent[],
    options?: AppendOptions,
  ): Appended;
  /** Acquires a lease that is free or lapsed, or renews the owner's. */
  acquire(session: Session, owner: string): Lease | null;
  confirm(session: Session, lease: Lease): boolean;
}

export const LEASE_TICKS = 60;
const NO_LEASE: Lease = { owner: '', epoch: 0, until: 0 };

const createStore = (now: () => number): Store => {
  const sessions = new Map<string, Session>();
  const claims = new Map<string, string>();
  const holds = ({ lease }: Session, by: Lease): boolean =>
    lease.owner === by.owner && lease.epoch === by.epoch && lease.until > now();
  return {
    sessions,
    session: (id) => {
      const known = sessions.get(id);
      if (known) return known;
      const data = { sessionId: id, sessionKey: `main:sim:sim:${id}`, agentId: 'main', startedAt: '' };
      const event: SessionEvent = { type: 'SessionStarted', schemaVersion: 1, data };
      const state = decider.evolve(decider.initialState(), event);
      const made: Session = { id, events: [{ event, epoch: null, current: 0 }], state, lease: NO_LEASE };
      sessions.set(id, made);
      return made;
    },
    append: (session, version, events, { lease, claim } = {}) => {
      const known = claim && claims.get(claim.key);
      if (known !== undefined) return { outcome: 'joined', turnId: known };
      if (lease && !holds(session, lease)) return 'fenced';
      if (session.events.length !== version) return 'conflict';
      if (claim) claims.set(claim.key, claim.turnId);
      const current = session.lease.epoch;
      session.events.push(...events.map((event) => ({ event, epoch: lease?.epoch ?? null, current })));
      session.state = events.reduce(decider.evolve, session.state);
      return { outcome: 'appended', turnId: claim?.turnId ?? '' };
    },
    acquire: (session, owner) => {
      const { lease } = session;
      if (lease.owner !== owner && lease.until > now()) return null;
      // A lapsed lease gets a new epoch also for its last owner: another process may have held it
      // in between.
      const epoch = lease.owner === owner && lease.until > now() ? lease.epoch : lease.epoch + 1;
      session.lease = { owner, epoch, until: now() + LEASE_TICKS };
      return session.lease;
    },
    confirm: holds,
  };
};

const MINUTE = 60_000;
/** Noon of the last day of a month, and the errors of a process's clock. */
const NOON = Date.UTC(2026, 10, 30, 12);
const CLOCK_ERRORS = [0, 5 * MINUTE, -5 * MINUTE, 60 * MINUTE, -60 * MINUTE, 12 * 60 * MINUTE];

/** Effects on the outside world, which no crash undoes. */
export interface Outside {
  /** Model calls that the provider bills, in order. */
  readonly billed: { readonly session: string; readonly attempt: number; readonly reservationId: string }[];
  /** Number of times that a tool was reached, by call id. */
  readonly toolCalls: Map<string, number>;
}

export interface World extends Scheduler {
  readonly choose: Choose;
  readonly store: Store;
  readonly ledger: ReturnType<typeof ledgerFrom>;
  readonly budget: BudgetEvent[];
  readonly limits: BudgetLimits;
  readonly policy: AgentPolicy;
  readonly outside: Outside;
  /** Turns that clients' answers named, by idempotency key. */
  readonly answers: Map<string, Set<string>>;
  readonly violations: string[];
  readonly processes: Process[];
  id(): string;
  /**
   * Returns the time as a process sees it. Clocks differ, and each jumps back and ahead, past the
   * month's end.
   */
  timeOfDay(): string;
  /** False at the end of the simulation, when no more faults are injected. */
  chaos: boolean;
}

export const createWorld = (choose: Choose, limits: BudgetLimits): World => {
  const scheduler = createScheduler(choose);
  let ids = 0;
  return {
    ...scheduler,
    choose,
    limits,
    store: createStore(scheduler.now),
    ledger: ledgerFrom(),
    budget: [],
    policy: {
      ...{ provider: 'first', model: 'm', maxIterations: 3, openCircuits: new Map() },
      // Approvals are simulated by turn-laws.unit.spec.ts.
      guarded: new Set(),
      fallback: choose(2) === 0 ? null : { provider: 'second', model: 'n' },
    },
    outside: { billed: [], toolCalls: new Map() },
    answers: new Map(),
    violations: [],
    processes: [],
    id: () => `00000000-0000-4000-8000-${String(++ids).padStart(12, '0')}`,
    timeOfDay: () => new Date(NOON + (CLOCK_ERRORS[choose(CLOCK_ERRORS.length)] ?? 0)).toISOString(),
    chaos: true,
  };
};

/**
 * Sends a request to the process that `to` returns. Returns null when no answer arrives in time.
 */
export function* sendRequest<T>(
  world: World,
  to: () => Process | undefined,
  serve: (process: Process, answer: (value: T) => void) => Fiber,
): Fiber<T | null> {
  const box: { value: T | null; answered: boolean } = { value: null, answered: false };
  const answer = (value: T): void => {
    box.value ??= value;
    box.answered = true;
  };
  // Delivered once or twice, or never when no process listens.
  const deliveries = world.chaos && world.choose(8) === 0 ? 2 : 1;
  for (let i = 0; i < deliveries; i++) {
    const process = to();
    if (process) world.spawn(process, serve(process, answer));
  }
  yield { until: () => box.answered, timeout: 40 };
  return box.value;
}
