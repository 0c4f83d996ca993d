import { describe, expect, it } from '@jest/globals';
import { bug, transient } from '@antiphon/kernel';
import type { LedgerDecision } from '@antiphon/metering-domain';
import { LedgerQueue, retryBatch } from './ledger-queue.js';
import type { LedgerWork } from './ledger-batch.js';

const settle = (reservationId: string): LedgerWork => ({
  workspace: 'default',
  command: { type: 'Settle', reservationId, outcome: { kind: 'unknown' } },
  metadata: { correlationId: 'spec', service: 'metering' },
});
const reserve = (reservationId: string): LedgerWork =>
  ({ ...settle(''), command: { type: 'Reserve', request: { reservationId } } }) as LedgerWork;
const idOf = ({ command }: LedgerWork): string => {
  if (command.type === 'Reserve') return command.request.reservationId;
  return command.type === 'Unfreeze' ? '' : command.reservationId;
};
const settled = (): LedgerDecision => ({
  answer: { type: 'Settle', status: 'settled' },
  events: [],
  reservationId: null,
  reserved: null,
  expectedVersion: 0,
  changes: [],
});
const options = { maxBatch: 3, maxQueued: 5, settleWithinMs: 1 };

describe('the ledger queue', () => {
  it('runs one batch at a time, releases before reservations, and settles each command', async () => {
    const batches: string[][] = [];
    let running = 0;
    const queue = new LedgerQueue(async (works) => {
      expect(++running).toBe(1);
      batches.push(works.map(idOf));
      await Promise.resolve();
      running--;
      return works.map(settled);
    }, options);
    await Promise.all(
      [reserve('r1'), settle('s1'), reserve('r2'), settle('s2')].map((work) => queue.submit(work)),
    );
    expect(batches).toEqual([['s1', 'r1', 'r2'], ['s2']]);
  });

  it('delays settlements until the next call only', async () => {
    const batches: string[][] = [];
    const queue = new LedgerQueue(
      (works) => {
        batches.push(works.map(idOf));
        return Promise.resolve(works.map(settled));
      },
      { maxBatch: 3, maxQueued: 10, settleWithinMs: 3_600_000 },
    );
    const first = queue.submit(settle('s1'));
    await new Promise((resolve) => setImmediate(resolve));
    expect(batches).toEqual([]);
    await Promise.all([first, queue.submit(reserve('r1'))]);
    const many = ['s2', 's3', 's4'].map((id) => queue.submit(settle(id)));
    await Promise.all(many);
    const last = queue.submit(settle('s5'));
    await queue.close();
    await last;
    expect(batches).toEqual([['s1', 'r1'], ['s2', 's3', 's4'], ['s5']]);
  });

  it('refuses commands beyond its capacity and after close, as transient', async () => {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const queue = new LedgerQueue(async (works) => {
      await released;
      return works.map(settled);
    }, options);
    const held = Array.from({ length: 5 }, (_, i) => queue.submit(settle(`s${i}`)));
    await expect(queue.submit(settle('one more'))).rejects.toMatchObject({
      kind: 'transient',
      code: 'METERING.BUSY',
    });
    const closing = queue.close();
    release();
    await closing;
    await expect(Promise.all(held)).resolves.toHaveLength(5);
    await expect(queue.submit(settle('late'))).rejects.toMatchObject({ code: 'METERING.BUSY' });
  });

  it('rejects every command of a failed batch and continues', async () => {
    let batches = 0;
    const queue = new LedgerQueue(
      (works) => (++batches === 1 ? Promise.reject(new TypeError('x')) : Promise.resolve(works.map(settled))),
      options,
    );
    await expect(queue.submit(settle('a'))).rejects.toMatchObject({ code: 'INTERNAL.UNEXPECTED' });
    await expect(queue.submit(settle('b'))).resolves.toMatchObject({ answer: { status: 'settled' } });
  });
});

describe('a batch that fails', () => {
  const unavailable = () => transient('LOG.UNAVAILABLE', 'down');

  it('is retried while the database is away', async () => {
    let tries = 0;
    const run = retryBatch(
      (works) => (++tries < 3 ? Promise.reject(unavailable()) : Promise.resolve(works.map(settled))),
      5_000,
    );
    await expect(run([settle('a')])).resolves.toHaveLength(1);
    expect(tries).toBe(3);
  });

  it('fails when the retries take too long', async () => {
    const run = retryBatch(() => Promise.reject(unavailable()), 0);
    await expect(run([settle('a'), settle('b')])).rejects.toMatchObject({ code: 'LOG.UNAVAILABLE' });
  });

  it('fails only the command that is the cause', async () => {
    const run = retryBatch(
      (works) =>
        works.some((work) => idOf(work) === 'bad')
          ? Promise.reject(bug('DATABASE.ERROR', 'refused'))
          : Promise.resolve(works.map(settled)),
      5_000,
    );
    const decisions = await run([settle('a'), settle('bad'), settle('b')]);
    expect(decisions).toMatchObject([{ answer: {} }, { error: { code: 'DATABASE.ERROR' } }, { answer: {} }]);
  });
});
