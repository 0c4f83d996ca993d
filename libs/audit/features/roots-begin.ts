import type pg from 'pg';
import { violation } from '@antiphon/audit-domain';
import { findEarlyEvent, findFirstUse, findRootsBegin, isTreeRoot } from '@antiphon/event-store';
import type { SignedRoot } from '@antiphon/event-store';
import { type About, type CheckReport, nowhere, type RootsBeginReport, Tally } from './audit-report.js';

const rootsBeginWithLog: About = {
  name: 'roots-begin-with-the-log',
  about: 'signed roots cover the log from its first event, or an operator has adopted the events before',
  counts: 'records',
};

const ADOPT =
  'What to do: put a copy of log-roots.jsonl back or name it with --roots; or accept the log as it is with `antiphon roots adopt`';

const describeBegin = (record: SignedRoot): RootsBeginReport => {
  const { position, at } = record;
  const {
    kind,
    actor = null,
    reason,
  } = isTreeRoot(record) ? record : { kind: 'root' as const, reason: null };
  return { position, at, kind, actor, reason };
};

/** Roots of one audit. */
export interface KnownRoots {
  /** Roots of a trusted key, without checkpoints. */
  readonly trusted: readonly SignedRoot[];
  /** True if a key is known and nothing else vouches for the log. */
  readonly needsRoots: boolean;
  /** Position of the newest event. */
  readonly head: number;
}

/**
 * Checks that no event was in the log before its signed roots began, unless a signed restore or an
 * adoption explains it. The log's owner can remove roots, and a signer without them could sign a
 * changed log. Without a key nothing is claimed.
 */
export const checkRootsBegin = async (
  client: pg.ClientBase,
  { trusted, needsRoots, head }: KnownRoots,
): Promise<{ readonly report: CheckReport; readonly begin: RootsBeginReport | null }> => {
  const tally = new Tally(rootsBeginWithLog, false);
  tally.count(trusted.length);
  const begin = findRootsBegin(trusted);
  if (begin === null) {
    const early = needsRoots ? await findFirstUse(client, head) : null;
    if (early)
      tally.add([
        violation(
          { ...nowhere(''), position: early.position },
          `a key signs this log, and no signed root was found for its ${head} events. ${ADOPT}`,
        ),
      ]);
    return { report: tally.report(), begin: null };
  }
  const early = await findEarlyEvent(client, begin);
  const { position } = begin.record;
  if (!begin.isFirst)
    tally.add([
      violation(
        { ...nowhere(''), position },
        `the first record of the roots is missing, so they are known from position ${position} on only. ${ADOPT}`,
      ),
    ]);
  if (early)
    tally.add([
      violation(
        { ...nowhere(''), position: early.position },
        `the roots begin at position ${position}, after the log: events before it are not covered, such as ${early.type}. ${ADOPT}`,
      ),
    ]);
  return { report: tally.report(), begin: begin.isFirst ? describeBegin(begin.record) : null };
};
