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

/** A write of a caller. */
interface Write {
  /** Position of the log that has it; null while that is unknown. */
  readonly position: number | null;
  /** Time of the write, ms since 1970. */
  readonly at: number;
}

/** Hint of one gateway to the others: the caller, and the position of its write. */
const Hint = z.tuple([z.string().max(1_000), z.int().nonnegative().nullable()]);

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
  private readonly writes = createBoundedMap<Write>(MAX_CALLERS);
  private readonly subscription: { unsubscribe(): void };

  constructor(
    private readonly nats: NatsLink,
    private readonly clock: Clock,
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

  /** Notes a write that begins. Until its position is known, reads take the head of the log. */
  begin(principal: Principal): void {
    this.note(keyOf(principal), null);
  }

  /**
   * Notes that a write is in the log. Returns the position that has it, once every gateway can know
   * of it; undefined while an engine is down, because the write itself has succeeded.
   */
  async end(principal: Principal): Promise<number | undefined> {
    const position = await this.readHead().catch(() => undefined);
    this.note(keyOf(principal), position ?? null);
    await this.exchange();
    return position;
  }

  /** Returns the position that a read of this caller must see; undefined without a recent write. */
  async positionFor(principal: Principal): Promise<number | undefined> {
    // A write at another gateway was published before its reply, so it arrives before this ends.
    await this.exchange();
    const write = this.writes.get(keyOf(principal));
    if (!write || this.clock.now() - write.at > KEPT_MS) return undefined;
    return write.position ?? this.readHead();
  }

  /** Waits for one round trip to NATS. An outage must stop neither a write nor a read. */
  private async exchange(): Promise<void> {
    const { connection } = this.nats;
    const flushed = callWhileConnected(this.nats, () => connection.flush());
    const isLate = (): Error => transient('MESSAGING.TIMEOUT', 'NATS did not answer in time');
    await withTimeout(flushed, EXCHANGE_MS, isLate).catch(() => undefined);
  }

  private note(key: string, position: number | null): void {
    this.writes.put(key, { position, at: this.clock.now() });
    if (this.nats.isConnected())
      this.nats.connection.publish(CALLER_WROTE_SUBJECT, JSON.stringify([key, position]));
  }

  private receive(message: unknown): void {
    const { success, data } = Hint.safeParse(message);
    if (success) this.writes.put(data[0], { position: data[1], at: this.clock.now() });
  }
}
