// Shared by the specs of this folder; not a test itself (those are *.unit.spec.ts and
// *.int.spec.ts).
import { randomUUID } from 'node:crypto';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore, PastReads } from '@antiphon/event-store';
import { UsageProjection } from './budgets/usage-projection.js';
import { meteringProjections } from './budgets/projections.js';
import { sessionStream } from '@antiphon/contracts/agent';
import type { SessionEvent } from '@antiphon/contracts/agent';
import { NEVER_BEGUN, budgetStream } from '@antiphon/contracts/metering';
import type { ReserveBudgetRequest, SettleBudgetRequest } from '@antiphon/contracts/metering';
import type { JsonObject } from '@antiphon/kernel';
import { createLogger, uuidIds } from '@antiphon/observability';
import type { BudgetLimits, PriceOf } from '@antiphon/metering-domain';
import { createTestDatabase } from '@antiphon/testing';
import { createEndReservations } from './reservations/end-reservations.js';
import { createLedger } from './ledger/ledger.js';
import type { LedgerOptions } from './ledger/ledger.js';
import type { LimitsOf } from './ledger/ledger-batch.js';
import { ReadAgentUsage } from './budgets/agent-budgets.handler.js';
import type { AgentUsageQuery } from './budgets/agent-budgets.handler.js';
import { BudgetLimitStore } from './budgets/budget-limit-store.js';
import { BudgetRuleStore } from './budgets/budget-rule-store.js';
import { ReadBudgets } from './budgets/read-budgets.handler.js';
import type { ReadBudgetsQuery } from './budgets/read-budgets.handler.js';
import { ReserveBudget } from './reservations/reserve-budget.handler.js';
import { SettleBudget } from './reservations/settle-budget.handler.js';

export const WORKSPACE = 'default';
export const NO_LIMITS: BudgetLimits = {
  session: null,
  daily: null,
  monthly: null,
  sessionMicroUsd: null,
  dailyMicroUsd: null,
  monthlyMicroUsd: null,
};

export interface ProcessOptions {
  readonly limits?: Partial<BudgetLimits>;
  /** Limits of other workspaces than the default one. */
  readonly limitsOf?: LimitsOf;
  readonly priceOf?: PriceOf;
  readonly options?: Partial<LedgerOptions>;
  readonly wrapPool?: (pool: ReturnType<typeof createPool>) => ReturnType<typeof createPool>;
}

/**
 * A database with any number of metering "processes" on it, each with its own pool, store and
 * queue.
 */
export const openMetering = async () => {
  const database = await createTestDatabase();
  const clock = { time: Date.parse('2026-11-21T10:00:00.000Z'), now: () => clock.time };
  const lines: Record<string, unknown>[] = [];
  const sink = { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) };
  const logger = createLogger({ service: 'metering', sink });
  const admin = createPool({ url: database.url, applicationName: 'spec', max: 2 });
  const agentPool = createPool({ url: database.urlFor('agent'), applicationName: 'spec-agent', max: 2 });
  const agentStore = createPostgresEventStore(agentPool);
  const closers: (() => Promise<void>)[] = [];

  const start = ({
    limits: some = {},
    priceOf = () => null,
    options = {},
    wrapPool,
    limitsOf: configured = () => ({ ...NO_LIMITS, ...some }),
  }: ProcessOptions = {}) => {
    const own = createPool({ url: database.urlFor('metering'), applicationName: 'spec-metering', max: 4 });
    const pool = wrapPool ? wrapPool(own) : own;
    const store = createPostgresEventStore(pool);
    const limitStore = new BudgetLimitStore({ configured, pool, store, clock, ids: uuidIds, logger });
    const limitsOf: LimitsOf = (workspace) => limitStore.limitsOf(workspace);
    const ledger = createLedger({ pool, store, clock, ids: uuidIds, logger, limitsOf, priceOf, options });
    const endReservations = createEndReservations({ pool, store, clock, ledger });
    const ruleStore = new BudgetRuleStore({ configured, priceOf, pool, logger });
    const past = new PastReads({ pool, definitions: meteringProjections });
    const usageProjection = new UsageProjection({ pool, logger });
    const stopping = new AbortController();
    let following: Promise<void> | undefined;
    closers.push(async () => {
      stopping.abort();
      await following;
      await past.close();
      await ledger.close();
      await store.close();
      await own.end();
    });
    const reserveBudget = new ReserveBudget(ledger, endReservations, clock, limitStore, ruleStore);
    const settleBudget = new SettleBudget(endReservations);
    const readBudgets = new ReadBudgets(pool, clock, limitStore, past);
    return {
      ledger,
      pool,
      store,
      endReservations,
      settleBudget,
      limitStore,
      ruleStore,
      setLimit: (agentId: string, limitTokens: number | null, limitMicroUsd: number | null = null) =>
        limitStore.set({ workspace: WORKSPACE, agentId, limitTokens, limitMicroUsd, actor: 'spec' }),
      usage: (query: Omit<AgentUsageQuery, 'workspace'> = {}) => {
        following ??= usageProjection.follow(stopping.signal);
        return new ReadAgentUsage(past, usageProjection).handle({ workspace: WORKSPACE, ...query });
      },
      reserve: (reservation: ReserveBudgetRequest) => reserveBudget.handle(reservation),
      /** Appends the event of an outcome, as the agent does first, and notifies metering of it. */
      settle: async (settlement: SettleBudgetRequest) => {
        await sayOutcome(settlement);
        return (await settleBudget.handle(settlement)).status;
      },
      readBudgets,
      read: async (query: ReadBudgetsQuery) => (await readBudgets.handle(query)).scopes,
    };
  };

  const close = async () => {
    await Promise.all(closers.map((closer) => closer()));
    await agentStore.close();
    await Promise.all([agentPool.end(), admin.end()]);
    await database.drop();
  };

  const requests = new Map<string, ReserveBudgetRequest>();
  const request = (over: Partial<ReserveBudgetRequest> = {}): ReserveBudgetRequest => {
    const made = requestWith(over);
    requests.set(made.reservationId, made);
    return made;
  };
  const requestWith = (over: Partial<ReserveBudgetRequest>): ReserveBudgetRequest => ({
    workspace: WORKSPACE,
    reservationId: randomUUID(),
    sessionId: randomUUID(),
    turnId: randomUUID(),
    attempt: 1,
    agentId: 'main',
    sessionKey: 'main:cli:me:you',
    provider: 'scripted',
    model: 'echo',
    inputBound: 100,
    maxOutputTokens: 400,
    minOutputTokens: 400,
    expiresAt: new Date(clock.time + 300_000).toISOString(),
    ...over,
  });

  /** Appends to a session as the agent does. */
  const sessionSays = async (sessionId: string, ...events: SessionEvent[]) =>
    agentStore.append({
      workspace: WORKSPACE,
      streams: [
        {
          streamId: sessionStream(sessionId),
          expectedVersion: 'any',
          events: events.map(({ type, schemaVersion, data }) => ({
            eventId: randomUUID(),
            type,
            schemaVersion,
            data: data as JsonObject,
            metadata: { correlationId: 'spec', service: 'agent' },
          })),
        },
      ],
    });

  /** Appends the end of an attempt with this outcome. */
  const sayOutcome = async ({ reservationId, outcome }: SettleBudgetRequest): Promise<void> => {
    const call = requests.get(reservationId);
    if (!call || (outcome.kind === 'not_dispatched' && outcome.reason === NEVER_BEGUN)) return;
    const end =
      outcome.kind === 'used'
        ? callCompleted(call, outcome.inputTokens, outcome.outputTokens)
        : callAborted(call, outcome.kind === 'unknown');
    await sessionSays(call.sessionId, end);
  };

  const budgetEvents = async (reservationId: string) =>
    agentStore.readStream(WORKSPACE, budgetStream(reservationId));

  const rows = async () => {
    const balances = await admin.query<Record<string, unknown>>(
      'select * from budget_balances order by workspace, scope_key',
    );
    const reservations = await admin.query<Record<string, unknown>>(
      'select * from budget_reservations order by workspace, reservation_id',
    );
    return { balances: balances.rows, reservations: reservations.rows };
  };

  return {
    start,
    close,
    urlFor: database.urlFor,
    request,
    clock,
    lines,
    admin,
    agentStore,
    sessionSays,
    budgetEvents,
    rows,
  };
};

type Ids = Pick<ReserveBudgetRequest, 'turnId' | 'attempt' | 'reservationId' | 'provider' | 'model'>;

export const callStarted = ({ turnId, attempt, reservationId, provider, model }: Ids): SessionEvent => ({
  type: 'ModelCallStarted',
  schemaVersion: 1,
  data: {
    turnId,
    attempt,
    step: 1,
    tryNumber: 1,
    provider,
    model,
    reservationId,
    startedAt: '2026-11-21T10:00:00.000Z',
  },
});

export const callCompleted = (
  { turnId, attempt, reservationId, provider, model }: Ids,
  inputTokens: number,
  outputTokens: number,
): SessionEvent => ({
  type: 'ModelCallCompleted',
  schemaVersion: 1,
  data: {
    turnId,
    attempt,
    step: 1,
    provider,
    model,
    reservationId,
    text: 'hello',
    thought: '',
    frames: [],
    toolCalls: [],
    finishReason: 'stop',
    usage: { inputTokens, outputTokens, estimated: false },
    costMicroUsd: null,
    completedAt: '2026-11-21T10:00:01.000Z',
  },
});

export const callAborted = (
  { turnId, attempt, reservationId, provider, model }: Ids,
  dispatched: boolean,
  usage: { inputTokens: number; outputTokens: number; estimated: boolean } | null = null,
): SessionEvent => ({
  type: 'ModelCallAborted',
  schemaVersion: 2,
  data: {
    turnId,
    attempt,
    step: 1,
    provider,
    model,
    reservationId,
    reason: dispatched ? 'driver_lost' : 'provider_unreachable',
    cause: { kind: 'text', text: 'gone' },
    dispatched,
    retryable: true,
    text: '',
    thought: '',
    frames: [],
    usage,
    abortedAt: '2026-11-21T10:00:01.000Z',
  },
});
