import type { Principal } from '@antiphon/contracts/identity';
import { createBoundedMap, transient, withTimeout, type Clock } from '@antiphon/kernel';
import { callWhileConnected, CALLER_WROTE_SUBJECT, type NatsLink } from '@antiphon/messaging';
import { z } from 'zod';

/** Time after a write for which reads of the same caller wait for it, ms. */
const KEPT_MS = 30_000;
/** Time limit of the round trip to NATS, ms. */
const EXCHANGE_MS = 250;
/** Maximum number of callers that a gateway remembers. */
const MAX_CALLERS = 10_000;

/** Maximum number of writes in progress that a gateway remembers of one caller. */
const MAX_OPEN = 100;

/** Recent writes of a caller, which may make several at the same time. */
interface CallerWrites {
  /** Highest position of the log that has a finished write; null before the first. */
  readonly position: number | null;
  /** Ids of the writes whose position is not known. */
  readonly open: ReadonlySet<string>;
  /** Time of the last hint, ms since 1970. */
  readonly at: number;
}

/** Hint of one gateway to the others: the caller, the position of its write, and id of the write. */
const Hint = z.tuple([z.string().max(1_000), z.int().nonnegative().nullable(), z.string().max(200)]);

const parseHint = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const keyOf = ({ workspace, caller }: Pick<Principal, 'workspace' | 'caller'>): string =>
  `${workspace}/${caller}`;

/**
 * Remembers which callers wrote in the last seconds, at whichever gateway, so that their reads wait
 * for these writes.
 */
export class RecentWrites {
  private readonly writes = createBoundedMap<CallerWrites>(MAX_CALLERS);
  private readonly subscription: { unsubscribe(): void };
  private count = 0;

  /** `processId` tells the writes of this gateway from those of others. */
  constructor(
    private readonly nats: NatsLink,
    private readonly clock: Clock,
    private readonly processId: string,
    private readonly readHead: () => Promise<number>,
  ) {
    this.subscription = nats.connection.subscribe(CALLER_WROTE_SUBJECT, {
      callback: (error, message) => {
        if (!error) this.receive(parseHint(message.string()));
      },
    });
  }

  close(): void {
    this.subscription.unsubscribe();
  }

  /**
   * Notes a write that begins, and returns its id. Until it ends, reads take the head of the log.
   */
  begin(principal: Principal): string {
    this.count += 1;
    const id = `${this.processId}/${this.count}`;
    this.note(keyOf(principal), null, id);
    return id;
  }

  /**
   * Notes that a write is in the log. Returns the position that has it, once every gateway can know
   * of it; undefined while an engine is down, because the write itself has succeeded.
   */
  async end(principal: Principal, id: string): Promise<number | undefined> {
    const position = await this.readHead().catch(() => undefined);
    this.note(keyOf(principal), position ?? null, id);
    await this.exchange();
    return position;
  }

  /** Returns the position that a read of this caller must see; undefined without a recent write. */
  async positionFor(principal: Principal): Promise<number | undefined> {
    // A write at another gateway was published before its reply, so it arrives before this ends.
    await this.exchange();
    const known = this.writes.get(keyOf(principal));
    if (!known || this.clock.now() - known.at > KEPT_MS) return undefined;
    return known.open.size > 0 || known.position === null ? this.readHead() : known.position;
  }

  /** Waits for one round trip to NATS. An outage must stop neither a write nor a read. */
  private async exchange(): Promise<void> {
    const { connection } = this.nats;
    const flushed = callWhileConnected(this.nats, () => connection.flush());
    const isLate = (): Error => transient('MESSAGING.TIMEOUT', 'NATS did not answer in time');
    await withTimeout(flushed, EXCHANGE_MS, isLate).catch(() => undefined);
  }

  private note(key: string, position: number | null, id: string): void {
    this.add(key, position, id);
    if (this.nats.isConnected())
      this.nats.connection.publish(CALLER_WROTE_SUBJECT, JSON.stringify([key, position, id]));
  }

  private receive(message: unknown): void {
    const { success, data } = Hint.safeParse(message);
    if (success) this.add(...data);
  }

  /** Hints of writes at the same time come in any order: the highest position counts. */
  private add(key: string, position: number | null, id: string): void {
    const now = this.clock.now();
    const known = this.writes.get(key);
    const isRecent = known !== undefined && now - known.at <= KEPT_MS;
    const open = new Set(isRecent ? known.open : []);
    if (position !== null) open.delete(id);
    else if (open.size < MAX_OPEN) open.add(id);
    const earlier = isRecent ? known.position : null;
    const highest =
      earlier === null || position === null ? (position ?? earlier) : Math.max(earlier, position);
    this.writes.put(key, { position: highest, open, at: now });
  }
}
