import type pg from 'pg';
import {
  approvalsPrecedeCalls,
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
import type { Finding } from '@antiphon/audit-domain';
import type { RecordedEvent, StreamHead } from '@antiphon/event-store';
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
import type { LogBounds } from '../read-log/log-bounds.js';
import { followRoots, signedRootsMatch } from './signed-roots.js';
import type { TrustedRoots } from './signed-roots.js';
import { mergeHeads, streamHeadsMatch } from './stream-heads.js';

type FollowedRoots = ReturnType<typeof followRoots>;

/** All streams, or, whole, those that something was appended to after a position. */
const streamsSql = (after: number | null): string => `select ${EVENT_COLUMNS} from events
  ${after === null ? '' : `where (workspace, stream_id) in (select workspace, stream_id from events where position > ${after})`}
  order by workspace, stream_id, stream_version`;

const SESSION_CHECKS = [
  approvalsPrecedeCalls,
  sessionsBeginOnce,
  turnsEndOnce,
  toolCallsHaveOneOutcome,
  modelAttemptsAreNumbered,
  leaseEpochsGrow,
];

const sameStream = (a: RecordedEvent, b: RecordedEvent): boolean =>
  a.workspace === b.workspace && a.streamId === b.streamId;

/** Everything that is judged within one event stream; it keeps the state of one stream at a time. */
const createStreamChecks = (strict: boolean, roots: FollowedRoots) => {
  const tallies: Tally[] = [];
  const tally = (about: Parameters<typeof createTally>[0]): Tally => {
    const made = createTally(about, strict);
    tallies.push(made);
    return made;
  };
  const everyEvent = follow(versionsAreContiguous, tally(versionsAreContiguous));
  const hashes = follow(hashChainsAreWhole, tally(hashChainsAreWhole));
  const heads = tally(streamHeadsMatch);
  const signed = tally(signedRootsMatch);
  signed.count(roots.count);
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
    signed,
    see: (event: RecordedEvent): void => {
      everyEvent.see(placeOf(event));
      hashes.see(event);
      roots.see(event);
      seeContent(event);
    },
    endStream: (): void => {
      for (const check of [everyEvent, hashes, ...sessions, runs, reservations]) check.end();
      roots.endStream();
    },
    reports: () => tallies.map((made) => made.report()),
  };
};

export interface StreamPass {
  readonly bounds: LogBounds;
  readonly strict: boolean;
  readonly trusted: TrustedRoots;
  /** Only streams with events after this position; null for all. What lies before it is held against a signed root. */
  readonly after: number | null;
}

/** Reads event streams by version, one after another. */
export const passByStream = async (client: pg.ClientBase, pass: StreamPass): Promise<CheckReport[]> => {
  const { bounds, strict, trusted, after } = pass;
  const roots = followRoots(trusted, bounds.epoch);
  const checks = createStreamChecks(strict, roots);
  const untouched = (head: StreamHead): Finding[] => {
    roots.untouched(head);
    return [];
  };
  const heads = after === null ? mergeHeads(client) : mergeHeads(client, untouched);
  let last: RecordedEvent | undefined;
  const endStream = async (ended: RecordedEvent): Promise<void> => {
    checks.heads.count(1);
    // First the heads before this one: roots take heads in the order of their names.
    checks.heads.add(await heads.meet(ended));
    checks.endStream();
  };
  for await (const row of rowsOf<EventRow>(client, 'audit_streams', streamsSql(after))) {
    const event = toEvent(row);
    if (last && !sameStream(last, event)) await endStream(last);
    checks.see(event);
    last = event;
  }
  if (last) await endStream(last);
  checks.heads.add(await heads.end());
  checks.signed.add(roots.end(bounds.head));
  return checks.reports();
};
