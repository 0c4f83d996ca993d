import type pg from 'pg';
import {
  admissionsStayWithinLimits,
  commandsHappenOnce,
  ledgerEqualsUsage,
  openBudgetBook,
  positionsAreGapless,
} from '@antiphon/audit-domain';
import type { BudgetBook, CommandClaim, CommandFact, EventPlace, SavedBook } from '@antiphon/audit-domain';
import type { RecordedEvent } from '@antiphon/event-store';
import { createTally, follow } from '../audit-report.js';
import type { CheckReport } from '../audit-report.js';
import { rowsOf } from '../read-log/cursor.js';
import { placeOf, toEvent } from '../read-log/event-rows.js';
import type { EventRow } from '../read-log/event-rows.js';
import type { LogBounds } from '../read-log/log-bounds.js';
import { isBudgetEvent, isSessionEvent, parseEvent } from '../read-log/parse-event.js';
import { readClaims, turnsAcceptedTwice } from './claims.js';

// Content only where a check of this pass needs it: texts and tool results are most of a log.
const LOG_SQL = `select position, workspace, category, stream_id, stream_version, event_id, type, schema_version,
  case when category = 'budget' or type in ('ModelCallCompleted', 'ModelCallAborted', 'TurnRequested', 'SessionStarted')
    then data end as data, '{}'::jsonb as metadata, recorded_at, hash
  from events`;

/** Whether the row came with its content. */
const isRead = ({ data }: RecordedEvent): boolean => (data as RecordedEvent['data'] | null) !== null;

const factOf = (event: RecordedEvent, place: EventPlace): CommandFact | undefined => {
  const { type, data } = event;
  if (type === 'TurnRequested') return { place, type, id: String(data['turnId']) };
  return type === 'SessionStarted' ? { place, type, id: String(data['sessionId']) } : undefined;
};

/** What the checks along the log know at a position, as JSON: a pass that begins there needs nothing before it. */
export interface PassState {
  readonly book: SavedBook;
  readonly ledger: unknown;
}

/** Where a pass begins; without one, at the beginning of the log. */
export interface PassStart {
  readonly position: number;
  readonly state: PassState;
}

export interface PositionPass {
  readonly reports: CheckReport[];
  readonly state: PassState;
  /** Every scope's balance at the end of the log, by the audit's own reckoning. */
  readonly book: BudgetBook;
  readonly events: number;
}

/** Everything that is judged along the whole log. */
const createPositionChecks = (base: number, book: BudgetBook, ledger: unknown, strict: boolean) => {
  const admissions = admissionsStayWithinLimits(book);
  const gapless = positionsAreGapless(base);
  const tallies = {
    positions: createTally(gapless, strict),
    commands: createTally(commandsHappenOnce, strict),
    admissions: createTally(admissions, strict),
    ledger: createTally(ledgerEqualsUsage, strict),
  };
  const positions = follow(gapless, tallies.positions);
  const commands = follow(commandsHappenOnce, tallies.commands);
  const usage = follow(ledgerEqualsUsage, tallies.ledger, ledger);
  const money = [follow(admissions, tallies.admissions), usage];

  const seeMoney = (event: RecordedEvent, place: EventPlace): void => {
    const parsed = parseEvent(event);
    if (parsed.kind !== 'known') return; // said by the pass by stream
    const { content } = parsed;
    if (isSessionEvent(content) || isBudgetEvent(content))
      for (const check of money) check.see({ place, content, epoch: undefined });
  };
  return {
    commands,
    tallies,
    save: (): PassState => ({ book: book.save(), ledger: usage.save() }),
    see: (event: RecordedEvent, claims: readonly CommandClaim[]): void => {
      const place = placeOf(event);
      positions.see(place);
      for (const claim of claims) commands.see({ kind: 'claim', claim });
      const fact = factOf(event, place);
      if (fact) commands.see({ kind: 'fact', fact });
      if (isRead(event)) seeMoney(event, place);
    },
    end: (): void => {
      for (const check of [positions, commands, ...money]) check.end();
    },
  };
};

/** Reads the log in the order of its positions, from `start` on; it keeps scopes, and what is open. */
export const passByPosition = async (
  client: pg.ClientBase,
  bounds: LogBounds,
  strict: boolean,
  start?: PassStart,
): Promise<PositionPass> => {
  const base = start?.position ?? bounds.base;
  const book = openBudgetBook(start?.state.book);
  const checks = createPositionChecks(base, book, start?.state.ledger, strict);
  const claims = readClaims(client, base);
  const sql = `${LOG_SQL} where position > ${base} order by position`;
  let events = 0;
  for await (const row of rowsOf<EventRow>(client, 'audit_log', sql)) {
    const event = toEvent(row);
    checks.see(event, await claims.upTo(event.position));
    events++;
  }
  for (const claim of await claims.upTo(Infinity)) checks.commands.see({ kind: 'claim', claim });
  const state = checks.save();
  checks.end();
  checks.tallies.commands.add(await turnsAcceptedTwice(client, base));
  return {
    reports: Object.values(checks.tallies).map((tally) => tally.report()),
    state,
    book,
    events,
  };
};
