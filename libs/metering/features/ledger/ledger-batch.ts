import { v5 } from 'uuid';
import type { AppendRequest, EventMetadata, Fence } from '@antiphon/event-store';
import { fold } from '@antiphon/kernel';
import type { Ids, JsonObject } from '@antiphon/kernel';
import { sessionLease } from '@antiphon/contracts/agent';
import { budgetStream } from '@antiphon/contracts/metering';
import type { BudgetEvent } from '@antiphon/contracts/metering';
import { decideBatch, ledgerFrom, reservationDecider, scopesAt } from '@antiphon/metering-domain';
import type { BudgetLimits, LedgerCommand, LedgerDecision, PriceOf } from '@antiphon/metering-domain';
import type { LedgerState, ReservationName, ScopeName } from './ledger-rows.js';
import type { LedgerWrite } from './ledger-sql.js';

/** Command for the ledger, with the metadata of its events. */
export interface LedgerWork {
  readonly workspace: string;
  readonly command: LedgerCommand;
  readonly metadata: EventMetadata;
  readonly lookAgain?: LookAgain;
}

/** Decides a command again in its transaction, while no event of a session can be appended. */
export interface LookAgain {
  readonly sessionId: string;
  /** Returns the command, or null if a call that cites the reservation is running. */
  readonly decide: () => Promise<LedgerCommand | null>;
}

/** Returns the limits of each session, day and month of a workspace. */
export type LimitsOf = (workspace: string) => BudgetLimits;

/** The rules in force while a batch is decided. `now` is ISO 8601, UTC. */
export interface BatchRules {
  readonly limitsOf: LimitsOf;
  readonly priceOf: PriceOf;
  readonly now: string;
}

/** Returns the scopes that a command names. The reservation names those of other commands. */
export const scopesOf = ({ workspace, command }: LedgerWork, { limitsOf, now }: BatchRules): ScopeName[] => {
  if (command.type === 'Unfreeze') return [{ workspace, key: command.scopeKey }];
  if (command.type !== 'Reserve') return [];
  return scopesAt(limitsOf(workspace), command.request.sessionId, now, command.ownerScopes).map(
    ({ key }) => ({
      workspace,
      key,
    }),
  );
};

/** Returns the reservation of a command, if it has one. */
export const reservationOf = ({ command }: LedgerWork): string | undefined => {
  if (command.type === 'Reserve') return command.request.reservationId;
  return command.type === 'Unfreeze' ? undefined : command.reservationId;
};

/** Decides the commands of each workspace on its state. Decisions have the order of `works`. */
export const decideAll = (
  state: LedgerState,
  works: readonly LedgerWork[],
  { limitsOf, priceOf, now }: BatchRules,
): LedgerDecision[] => {
  const decisions: LedgerDecision[] = [];
  for (const workspace of new Set(works.map((work) => work.workspace))) {
    const own = works.flatMap((work, index) => (work.workspace === workspace ? [{ work, index }] : []));
    const snapshot = state.get(workspace) ?? ledgerFrom().snapshot();
    const commands = own.map(({ work }) => work.command);
    decideBatch(snapshot, commands, { limits: limitsOf(workspace), priceOf, now }).forEach((decision, at) => {
      decisions[own[at]?.index ?? 0] = decision;
    });
  }
  return decisions;
};

/** Events of one reservation in a batch: one event stream, one append. */
export interface ReservationAppend extends ReservationName {
  readonly expectedVersion: number;
  readonly events: { readonly event: BudgetEvent; readonly metadata: EventMetadata }[];
  /** Fences a new reservation with the lease of its session's driver. */
  readonly fence?: Fence;
}

const fenceOf = ({ command }: LedgerWork): { fence?: Fence } => {
  if (command.type !== 'Reserve' || command.request.epoch === undefined) return {};
  const { sessionId, epoch } = command.request;
  return { fence: { lease: sessionLease(sessionId), epoch } };
};

/** Groups the decided events by reservation. */
export const groupByReservation = (
  works: readonly LedgerWork[],
  decisions: readonly LedgerDecision[],
): ReservationAppend[] => {
  const groups = new Map<string, ReservationAppend>();
  decisions.forEach((decision, index) => {
    const work = works[index] as LedgerWork;
    if ('error' in decision || decision.reservationId === null || decision.events.length === 0) return;
    const { reservationId: id, expectedVersion } = decision;
    const name = `${work.workspace} ${id}`;
    const fresh = { workspace: work.workspace, id, expectedVersion, events: [], ...fenceOf(work) };
    const group: ReservationAppend = groups.get(name) ?? fresh;
    group.events.push(...decision.events.map((event) => ({ event, metadata: work.metadata })));
    groups.set(name, group);
  });
  return [...groups.values()];
};

/** Returns a fixed id for an event that can happen once, so that the log refuses a second one. */
const eventIdOf = (event: BudgetEvent, ids: Ids): string => {
  if (event.type === 'BudgetScopeUnfrozen') return ids.next();
  const scope = event.type === 'BudgetScopeFrozen' ? event.data.scopeKey : '';
  return v5(`${event.type} ${scope}`, event.data.reservationId);
};

/** Returns the append of one reservation's events. */
export const toAppendRequest = (
  { workspace, id, expectedVersion, events, fence }: ReservationAppend,
  ids: Ids,
): AppendRequest => ({
  workspace,
  ...(fence ? { fence } : {}),
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

/** Returns the row changes of the decisions. */
export const toLedgerWrite = (
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
