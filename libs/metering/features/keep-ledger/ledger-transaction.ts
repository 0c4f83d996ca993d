import type pg from 'pg';
import { v5 } from 'uuid';
import { inTransaction } from '@antiphon/database';
import type { AppendOutcome, AppendRequest, EventMetadata, EventStorePg } from '@antiphon/event-store';
import { bug, conflict, fold } from '@antiphon/kernel';
import type { AppError, Ids, JsonObject } from '@antiphon/kernel';
import { budgetStream } from '@antiphon/contracts/metering';
import type { BudgetEvent } from '@antiphon/contracts/metering';
import { decideBatch, ledgerFrom, reservationDecider, scopesAt } from '@antiphon/metering-domain';
import type { LedgerCommand, LedgerDecision, LedgerRules } from '@antiphon/metering-domain';
import type { LedgerState, ReservationName, ScopeName } from './ledger-rows.js';
import { lockLedger } from './lock-ledger.js';
import { writeLedger } from './write-ledger.js';
import type { LedgerWrite } from './write-ledger.js';

/** A command on its way into the ledger, with what its events say about where they came from. */
export interface LedgerWork {
  readonly workspace: string;
  readonly command: LedgerCommand;
  readonly metadata: EventMetadata;
}

export interface LedgerTransactionDeps {
  readonly pool: pg.Pool;
  readonly store: EventStorePg;
  readonly ids: Ids;
}

const scopesOf = ({ workspace, command }: LedgerWork, { limits, now }: LedgerRules): ScopeName[] => {
  if (command.type === 'Unfreeze') return [{ workspace, key: command.scopeKey }];
  if (command.type !== 'Reserve') return []; // the reservation names them
  return scopesAt(limits, command.request.sessionId, now).map(({ key }) => ({ workspace, key }));
};

const reservationOf = ({ command }: LedgerWork): string | undefined => {
  if (command.type === 'Reserve') return command.request.reservationId;
  return command.type === 'Unfreeze' ? undefined : command.reservationId;
};

/** Decides each workspace's commands on its own state; the decisions come back in the order of the works. */
const decideAll = (
  state: LedgerState,
  works: readonly LedgerWork[],
  rules: LedgerRules,
): LedgerDecision[] => {
  const decisions: LedgerDecision[] = [];
  for (const workspace of new Set(works.map((work) => work.workspace))) {
    const own = works.flatMap((work, index) => (work.workspace === workspace ? [{ work, index }] : []));
    const snapshot = state.get(workspace) ?? ledgerFrom().snapshot();
    const commands = own.map(({ work }) => work.command);
    decideBatch(snapshot, commands, rules).forEach((decision, at) => {
      decisions[own[at]?.index ?? 0] = decision;
    });
  }
  return decisions;
};

/** Everything that a batch says about one reservation: one event stream, one append. */
interface ReservationAppend extends ReservationName {
  readonly expectedVersion: number;
  readonly events: { readonly event: BudgetEvent; readonly metadata: EventMetadata }[];
}

const groupByReservation = (
  works: readonly LedgerWork[],
  decisions: readonly LedgerDecision[],
): ReservationAppend[] => {
  const groups = new Map<string, ReservationAppend>();
  decisions.forEach((decision, index) => {
    const work = works[index] as LedgerWork;
    if ('error' in decision || decision.reservationId === null || decision.events.length === 0) return;
    const { reservationId: id, expectedVersion } = decision;
    const name = `${work.workspace} ${id}`;
    const group = groups.get(name) ?? { workspace: work.workspace, id, expectedVersion, events: [] };
    group.events.push(...decision.events.map((event) => ({ event, metadata: work.metadata })));
    groups.set(name, group);
  });
  return [...groups.values()];
};

/** Fixed names for what can happen once, so that the log itself refuses a second one. */
const eventIdOf = (event: BudgetEvent, ids: Ids): string => {
  if (event.type === 'BudgetScopeUnfrozen') return ids.next();
  const scope = event.type === 'BudgetScopeFrozen' ? event.data.scopeKey : '';
  return v5(`${event.type} ${scope}`, event.data.reservationId);
};

const appendOf = (
  { workspace, id, expectedVersion, events }: ReservationAppend,
  ids: Ids,
): AppendRequest => ({
  workspace,
  streams: [
    {
      streamId: budgetStream(id),
      expectedVersion,
      events: events.map(({ event, metadata }) => ({
        eventId: eventIdOf(event, ids),
        type: event.type,
        schemaVersion: event.schemaVersion,
        data: event.data as JsonObject,
        metadata,
      })),
    },
  ],
});

const writeOf = (
  state: LedgerState,
  works: readonly LedgerWork[],
  decisions: readonly LedgerDecision[],
  groups: readonly ReservationAppend[],
): LedgerWrite => ({
  changes: decisions.flatMap((decision, index) =>
    'error' in decision
      ? []
      : decision.changes.map((change) => ({ ...change, workspace: (works[index] as LedgerWork).workspace })),
  ),
  reservations: groups.flatMap(({ workspace, id, events }) => {
    const before = state.get(workspace)?.reservations.get(id) ?? reservationDecider.initialState();
    const after = fold(
      reservationDecider.evolve,
      before,
      events.map(({ event }) => event),
    );
    return after.status === 'none' ? [] : [{ workspace, id, state: after, isNew: before.status === 'none' }];
  }),
});

const RETRY = 'METERING.BATCH_CHANGED';
const BEHIND = 'METERING.BALANCES_BEHIND';
const codeOf = (error: unknown): string | undefined => (error as Partial<AppError>).code;

interface Attempt {
  readonly decisions: readonly LedgerDecision[];
  readonly appended: boolean;
}

type Refusals = Map<string, AppError>;
const refusalKey = (workspace: string, id: string): string => `${workspace} ${id}`;

/** Written by another transaction, whose changes are not in what this one has read: they must not be made twice. */
const behind = (id: string): AppError =>
  conflict(BEHIND, `the log knows more of reservation ${id} than the balances do; rebuild them`);

const noteRefusals = (
  outcomes: readonly AppendOutcome[],
  groups: readonly ReservationAppend[],
  refused: Refusals,
): void =>
  outcomes.forEach((outcome, index) => {
    const { workspace, id } = groups[index] as ReservationAppend;
    if (!outcome.ok) refused.set(refusalKey(workspace, id), outcome.error);
    else if (outcome.result.outcome !== 'appended') refused.set(refusalKey(workspace, id), behind(id));
  });

const attemptBatch = (
  { pool, store, ids }: LedgerTransactionDeps,
  works: readonly LedgerWork[],
  rules: LedgerRules,
  refused: Refusals,
): Promise<Attempt> =>
  inTransaction(pool, async (client) => {
    const reservations = works.flatMap((work) => {
      const id = reservationOf(work);
      return id === undefined ? [] : [{ workspace: work.workspace, id }];
    });
    const scopes = works.flatMap((work) => scopesOf(work, rules));
    const state = await lockLedger(client, scopes, reservations);
    const decisions = decideAll(state, works, rules);
    const groups = groupByReservation(works, decisions);
    if (groups.length === 0) return { decisions, appended: false };
    await writeLedger(client, writeOf(state, works, decisions, groups));
    // Last, since every other append waits from here to the commit.
    const outcomes = await store.appendWithin(
      client,
      groups.map((group) => appendOf(group, ids)),
    );
    noteRefusals(outcomes, groups, refused);
    if (refused.size > 0) throw conflict(RETRY, 'the log refused a part of this batch');
    return { decisions, appended: true };
  });

/** Rounds in which a reservation may turn out to have been changed elsewhere before its command fails. */
const PATIENT_ROUNDS = 3;
/** More rounds than this mean that something is wrong with the state, not with one reservation. */
const MAX_ROUNDS = 20;

/** A reservation that another process has just made or ended: its row tells how, at the next look. */
const STALE = new Set([BEHIND, 'LOG.VERSION_CONFLICT', 'LOG.EVENT_ID_CONFLICT', 'DATABASE.UNIQUE']);
const isStale = ({ code }: AppError): boolean => STALE.has(code);

/** A command that the log refused fails, unless another look at its reservation may help. */
const noteErrors = (
  works: readonly LedgerWork[],
  refused: Refusals,
  mayBeStale: (failure: AppError) => boolean,
  errors: Map<LedgerWork, AppError>,
): void => {
  for (const work of works) {
    const failure = refused.get(refusalKey(work.workspace, reservationOf(work) ?? ''));
    if (failure && !mayBeStale(failure)) errors.set(work, failure);
  }
};

/**
 * Carries out a batch in one transaction: balances locked in the order of their keys, decided, written, appended.
 * What the log refuses is decided anew, or fails alone, and the rest goes on without it.
 * Rejects when the database does (`LOG.UNAVAILABLE`, `DATABASE.…`); then nothing, or everything, was committed.
 */
export const runLedgerBatch = async (
  deps: LedgerTransactionDeps,
  works: readonly LedgerWork[],
  rules: LedgerRules,
): Promise<LedgerDecision[]> => {
  const errors = new Map<LedgerWork, AppError>();
  for (let round = 1; round <= MAX_ROUNDS; round++) {
    const left = works.filter((work) => !errors.has(work));
    if (left.length === 0) return inOrder(works, [], [], errors);
    const refused: Refusals = new Map();
    try {
      const { decisions, appended } = await attemptBatch(deps, left, rules, refused);
      if (appended) deps.store.announce();
      return inOrder(works, left, decisions, errors);
    } catch (error) {
      const mayBeStale = (failure: AppError): boolean => isStale(failure) && round <= PATIENT_ROUNDS;
      if (codeOf(error) !== RETRY && !mayBeStale(error as AppError)) throw error;
      noteErrors(left, refused, mayBeStale, errors);
    }
  }
  throw bug('METERING.BATCH_UNSETTLED', 'a batch of budget commands could not be carried out');
};

const inOrder = (
  works: readonly LedgerWork[],
  decided: readonly LedgerWork[],
  decisions: readonly LedgerDecision[],
  errors: ReadonlyMap<LedgerWork, AppError>,
): LedgerDecision[] => {
  const byWork = new Map(decided.map((work, index) => [work, decisions[index] as LedgerDecision]));
  return works.map((work) => {
    const error = errors.get(work);
    return error ? { error } : (byWork.get(work) as LedgerDecision);
  });
};
