import type pg from 'pg';
import { type AuditCheck, type Finding, violation } from '@antiphon/audit-domain';
import { type ChainStart, type RecordedEvent, type StreamHead, verifyChain } from '@antiphon/event-store';
import { type About, nowhere } from '../audit-report.js';
import { readRows, toPlace } from '../read-log/read-log.js';

/** Recomputes the hash of every event of a stream from its content and the hash before it. */
export const hashChainsAreWhole: AuditCheck<RecordedEvent> = {
  name: 'hash-chains-are-whole',
  about: 'every event still has the content and the predecessor from which its hash was computed',
  counts: 'events',
  start: () => {
    let previous: ChainStart | undefined;
    let events = 0;
    return {
      see: (event) => {
        events++;
        const verdict = verifyChain([event], previous);
        // Continues from the stored hash, so that later events do not report the same change again.
        previous = { version: event.streamVersion, hash: event.hash };
        return verdict.isIntact ? [] : [violation(toPlace(event), verdict.reason)];
      },
      end: () => [],
      count: () => events,
    };
  },
};

export const streamHeadsMatch: About = {
  name: 'stream-heads-match',
  about: 'every event stream ends at the version and with the hash of its head',
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

type StreamName = Pick<RecordedEvent, 'workspace' | 'streamId'>;

/** Compares names in the order of the database (collation "C"); they are ASCII. */
const precedes = (a: StreamName, b: StreamName): boolean =>
  a.workspace === b.workspace ? a.streamId < b.streamId : a.workspace < b.workspace;

const toHead = ({ workspace, stream_id: streamId, version, hash }: HeadRow): StreamHead => ({
  workspace,
  streamId,
  version: Number(version),
  hash: hash.toString('hex'),
});

const reportLostStream = ({ workspace, streamId, version }: StreamHead): Finding[] => [
  violation(nowhere(workspace, streamId), `${streamId} has a head at version ${version} and no events`),
];

/** Merges the heads with the streams that are read, both in the order of their names. */
export class HeadMerge {
  private readonly rows: AsyncGenerator<HeadRow, void, undefined>;
  private head: StreamHead | undefined;
  private hasStarted = false;

  constructor(
    client: pg.ClientBase,
    /** Returns the findings for a head whose stream is not read. */
    private readonly seeUnreadHead: (head: StreamHead) => Finding[] = reportLostStream,
  ) {
    this.rows = readRows<HeadRow>(client, 'audit_heads', HEADS_SQL);
  }

  /** Compares the last event of a stream with its head, after all heads before it. */
  async compareLast(last: RecordedEvent): Promise<Finding[]> {
    const findings = await this.skipTo(last);
    const { head } = this;
    if (!head || precedes(last, head))
      return [...findings, violation(toPlace(last), `${last.streamId} has no head`)];
    await this.advance();
    if (head.version === last.streamVersion && head.hash === last.hash) return findings;
    const text = `${last.streamId} ends here; its head has version ${head.version} with another hash or number`;
    return [...findings, violation(toPlace(last), text)];
  }

  /** Returns the findings of the heads after the last stream. */
  end(): Promise<Finding[]> {
    return this.skipTo(undefined);
  }

  private async advance(): Promise<void> {
    const next = await this.rows.next();
    this.head = next.done === true ? undefined : toHead(next.value);
  }

  private async skipTo(name: StreamName | undefined): Promise<Finding[]> {
    if (!this.hasStarted) await this.advance();
    this.hasStarted = true;
    const findings: Finding[] = [];
    while (this.head && (!name || precedes(this.head, name))) {
      if (this.head.version > 0) findings.push(...this.seeUnreadHead(this.head));
      await this.advance();
    }
    return findings;
  }
}
