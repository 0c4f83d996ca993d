import type pg from 'pg';
import { violation } from '@antiphon/audit-domain';
import type { Finding } from '@antiphon/audit-domain';
import type { RecordedEvent, StreamHead } from '@antiphon/event-store';
import { nowhere } from '../audit-report.js';
import type { About } from '../audit-report.js';
import { rowsOf } from '../read-log/cursor.js';
import { placeOf } from '../read-log/event-rows.js';

export const streamHeadsMatch: About = {
  name: 'stream-heads-match',
  about: 'every event stream ends where its head says, with the hash that its head says',
  counts: 'event streams',
};

interface HeadRow {
  readonly workspace: string;
  readonly stream_id: string;
  readonly version: string;
  readonly hash: Buffer;
}

const HEADS_SQL =
  'select workspace, stream_id, version, hash from stream_heads order by workspace, stream_id';

type Name = Pick<RecordedEvent, 'workspace' | 'streamId'>;

/** As the database orders them (collation "C"): ids and workspaces are ASCII, so code units do. */
const precedes = (a: Name, b: Name): boolean =>
  a.workspace === b.workspace ? a.streamId < b.streamId : a.workspace < b.workspace;

const nameOf = (row: HeadRow): Name => ({ workspace: row.workspace, streamId: row.stream_id });

const lostStream = ({ workspace, streamId, version }: StreamHead): Finding[] => [
  violation(nowhere(workspace, streamId), `${streamId} has a head at version ${version} and no events`),
];

export interface HeadMerge {
  /** Compares the last event of a stream with its head; streams come in the order of their names. */
  meet(last: RecordedEvent): Promise<Finding[]>;
  /** Heads that no stream came for. */
  end(): Promise<Finding[]>;
}

/** What is to be said of a head that no stream came for. */
type Alone = (head: StreamHead) => Finding[];

const toHead = ({ workspace, stream_id: streamId, version, hash }: HeadRow): StreamHead => ({
  workspace,
  streamId,
  version: Number(version),
  hash: hash.toString('hex'),
});

/** Walks the heads beside the streams, both in the order of their names. */
export const mergeHeads = (client: pg.ClientBase, alone: Alone = lostStream): HeadMerge => {
  const heads = rowsOf<HeadRow>(client, 'audit_heads', HEADS_SQL);
  let head: HeadRow | undefined;
  let started = false;
  const advance = async (): Promise<void> => {
    const next = await heads.next();
    head = next.done === true ? undefined : next.value;
  };
  const skipTo = async (name: Name | undefined): Promise<Finding[]> => {
    if (!started) await advance();
    started = true;
    const findings: Finding[] = [];
    while (head && (!name || precedes(nameOf(head), name))) {
      if (Number(head.version) > 0) findings.push(...alone(toHead(head)));
      await advance();
    }
    return findings;
  };
  return {
    meet: async (last) => {
      const findings = await skipTo(last);
      if (!head || precedes(last, nameOf(head)))
        return [...findings, violation(placeOf(last), `${last.streamId} has no head`)];
      const { version, hash } = head;
      await advance();
      if (Number(version) === last.streamVersion && hash.toString('hex') === last.hash) return findings;
      const text = `${last.streamId} ends here; its head says version ${version} with another hash or number`;
      return [...findings, violation(placeOf(last), text)];
    },
    end: () => skipTo(undefined),
  };
};
