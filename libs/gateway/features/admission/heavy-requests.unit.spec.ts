import { describe, expect, it } from '@jest/globals';
import { isAppError } from '@antiphon/kernel';
import { HeavyRequests } from './heavy-requests.js';

const caller = (workspace: string, key: string) => ({ workspace, caller: `key/${key}` });
const codeOf = (error: unknown): unknown => (isAppError(error) ? error.code : error);

/** Enters requests without waiting, and records the order in which they begin. */
class Entries {
  readonly begun: string[] = [];
  readonly failed: unknown[] = [];
  readonly #leave = new Map<string, () => void>();

  constructor(readonly heavy: HeavyRequests) {}

  async enter(name: string, workspace: string, key: string, signal?: AbortSignal): Promise<void> {
    const entered = this.heavy.enter(caller(workspace, key), signal ? { signal } : {});
    void entered.then(
      (leave) => {
        this.begun.push(name);
        this.#leave.set(name, leave);
      },
      (error: unknown) => this.failed.push(codeOf(error)),
    );
    await this.settle();
  }

  async leave(name: string): Promise<void> {
    this.#leave.get(name)?.();
    await this.settle();
  }

  settle(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }
}

describe('HeavyRequests', () => {
  it('wait between their pages for small requests, and not for long', async () => {
    const heavy = new HeavyRequests();
    await heavy.yieldToSmall();
    const end = [heavy.beginSmall(), heavy.beginSmall()];
    let isResumed = false;
    const resumed = heavy.yieldToSmall().then(() => (isResumed = true));
    end[0]?.();
    end[0]?.();
    await new Promise((resolve) => setImmediate(resolve));
    expect(isResumed).toBe(false);
    end[1]?.();
    await resumed;
    heavy.beginSmall();
    await heavy.yieldToSmall();
  });

  it('run two of a key at once and four of a workspace, and further ones as these end', async () => {
    const entries = new Entries(new HeavyRequests());
    for (const name of ['a1', 'a2', 'a3']) await entries.enter(name, 'acme', 'a');
    expect(entries.begun).toEqual(['a1', 'a2']);
    for (const name of ['b1', 'b2']) await entries.enter(name, 'acme', 'b');
    await entries.enter('c1', 'acme', 'c');
    expect(entries.begun).toEqual(['a1', 'a2', 'b1', 'b2']);
    await entries.leave('b1');
    expect(entries.begun.at(-1)).toBe('c1');
    await entries.leave('a1');
    expect(entries.begun.at(-1)).toBe('a3');
    expect(entries.heavy.counts).toEqual({ running: 4, waiting: 0 });
  });

  it('begin the request of the workspace with the fewest, however many of another wait', async () => {
    const entries = new Entries(new HeavyRequests({ total: 4 }));
    for (const key of ['a', 'b', 'c', 'd']) await entries.enter(key, 'acme', key);
    for (let i = 0; i < 200; i++) await entries.enter(`more-${i}`, 'acme', `more-${i}`);
    await entries.enter('other', 'beta', 'x');
    await entries.leave('a');
    expect(entries.begun.slice(4)).toEqual(['other']);
  });

  it('refuse one of a key that has too many waiting, and not those of others', async () => {
    const entries = new Entries(new HeavyRequests({ waitingPerKey: 3, total: 2 }));
    for (let i = 0; i < 6; i++) await entries.enter(`a${i}`, 'acme', 'a');
    expect(entries.failed).toEqual(['GATEWAY.TOO_MANY_HEAVY_REQUESTS']);
    await entries.enter('b', 'acme', 'b');
    expect(entries.failed).toHaveLength(1);
    for (let i = 0; i < 5; i++) await entries.leave(`a${i}`);
    expect(entries.begun).toContain('b');
  });

  it('end a wait at its deadline and when its client is gone, and free its place', async () => {
    const entries = new Entries(new HeavyRequests({ perKey: 1, waitMs: 20, waitingPerKey: 1 }));
    await entries.enter('first', 'acme', 'a');
    const late = entries.heavy.enter(caller('acme', 'a')).catch(codeOf);
    expect(await late).toBe('GATEWAY.BUSY');
    const gone = new AbortController();
    await entries.enter('gone', 'acme', 'a', gone.signal);
    gone.abort();
    await entries.settle();
    expect(entries.failed).toEqual(['GATEWAY.BUSY']);
    expect(entries.heavy.counts).toEqual({ running: 1, waiting: 0 });
    await entries.enter('next', 'acme', 'a');
    await entries.leave('first');
    expect(entries.begun).toEqual(['first', 'next']);
  });

  it('let the work of subscriptions wait without a deadline, and end it once', async () => {
    const heavy = new HeavyRequests({ perKey: 1, waitMs: 5 });
    const leave = await heavy.enter(caller('acme', 'a'));
    const done: number[] = [];
    const works = [1, 2].map((n) =>
      heavy.run(caller('acme', 'a'), async () => void done.push(n), { isPatient: true }),
    );
    expect(await heavy.enter(caller('acme', 'a')).catch(codeOf)).toBe('GATEWAY.BUSY');
    expect(done).toEqual([]);
    leave();
    leave();
    await Promise.all(works);
    expect([done, heavy.counts]).toEqual([[1, 2], { running: 0, waiting: 0 }]);
  });
});
