import type pg from 'pg';
import {
  leaseEpochsGrow,
  modelAttemptsAreNumbered,
  reservationsEndOnce,
  runsFollowTheirGraph,
  sessionsBeginOnce,
  toolCallsHaveOneOutcome,
  turnsEndOnce,
  versionsAreContiguous,
  violation,
} from '@antiphon/audit-domain';
import type { RecordedEvent } from '@antiphon/event-store';
import { createTally, follow } from '../audit-report.js';
import type { CheckReport, Tally } from '../audit-report.js';
import { rowsOf } from '../read-log/cursor.js';
import { EVENT_COLUMNS, placeOf, toEvent } from '../read-log/event-rows.js';
import type { EventRow } from '../read-log/event-rows.js';
import {
  eventsMatchContracts,
  isBudgetEvent,
  isRunEvent,
  isSessionEvent,
  parseEvent,
} from '../read-log/parse-event.js';
import { hashChainsAreWhole } from './hash-chains.js';
import { mergeHeads, streamHeadsMatch } from './stream-heads.js';

const STREAMS_SQL = `select ${EVENT_COLUMNS} from events order by workspace, stream_id, stream_version`;

const SESSION_CHECKS = [
  sessionsBeginOnce,
  turnsEndOnce,
  toolCallsHaveOneOutcome,
  modelAttemptsAreNumbered,
  leaseEpochsGrow,
];

const sameStream = (a: RecordedEvent, b: RecordedEvent): boolean =>
  a.workspace === b.workspace && a.streamId === b.streamId;

/** Everything that is judged within one event stream; it keeps the state of one stream at a time. */
const createStreamChecks = (strict: boolean) => {
  const tallies: Tally[] = [];
  const tally = (about: Parameters<typeof createTally>[0]): Tally => {
    const made = createTally(about, strict);
    tallies.push(made);
    return made;
  };
  const everyEvent = follow(versionsAreContiguous, tally(versionsAreContiguous));
  const hashes = follow(hashChainsAreWhole, tally(hashChainsAreWhole));
  const heads = tally(streamHeadsMatch);
  const contracts = tally(eventsMatchContracts);
  const sessions = SESSION_CHECKS.map((check) => follow(check, tally(check)));
  const runs = follow(runsFollowTheirGraph, tally(runsFollowTheirGraph));
  const reservations = follow(reservationsEndOnce, tally(reservationsEndOnce));

  const seeContent = (event: RecordedEvent): void => {
    const parsed = parseEvent(event);
    const place = placeOf(event);
    if (parsed.kind === 'foreign') return;
    contracts.count(1);
    if (parsed.kind === 'malformed')
      return contracts.add([violation(place, `${event.type}: ${parsed.reason}`)]);
    const { content } = parsed;
    const { epoch } = event.metadata;
    if (isSessionEvent(content)) for (const check of sessions) check.see({ place, content, epoch });
    else if (isRunEvent(content)) runs.see({ place, content, epoch });
    else if (isBudgetEvent(content)) reservations.see({ place, content, epoch });
  };
  return {
    heads,
    see: (event: RecordedEvent): void => {
      everyEvent.see(placeOf(event));
      hashes.see(event);
      seeContent(event);
    },
    endStream: (): void => {
      for (const check of [everyEvent, hashes, ...sessions, runs, reservations]) check.end();
    },
    reports: () => tallies.map((made) => made.report()),
  };
};

/** Reads every event stream by version, one after another. */
export const passByStream = async (client: pg.ClientBase, strict: boolean): Promise<CheckReport[]> => {
  const checks = createStreamChecks(strict);
  const heads = mergeHeads(client);
  let last: RecordedEvent | undefined;
  const endStream = async (ended: RecordedEvent): Promise<void> => {
    checks.endStream();
    checks.heads.count(1);
    checks.heads.add(await heads.meet(ended));
  };
  for await (const row of rowsOf<EventRow>(client, 'audit_streams', STREAMS_SQL)) {
    const event = toEvent(row);
    if (last && !sameStream(last, event)) await endStream(last);
    checks.see(event);
    last = event;
  }
  if (last) await endStream(last);
  checks.heads.add(await heads.end());
  return checks.reports();
};
