import { describe, expect, it } from '@jest/globals';
import { createMemoryStarts } from '@antiphon/testing';
import type { MemoryStarts } from '@antiphon/testing';
import { CarefulRelay } from './careful-relay.js';

const MAX = 256;

/** Starts a process that publishes the events after position 7. */
const begin = async (starts: MemoryStarts) => {
  const relay = new CarefulRelay(starts, MAX);
  relay.beginTerm();
  return { relay, page: await relay.beginPage(7) };
};

describe('a relay that publishes again', () => {
  it('omits the data of an event at the third start', async () => {
    const starts = createMemoryStarts();
    const pages = [];
    for (let kills = 0; kills < 3; kills++) pages.push((await begin(starts)).page);
    expect(pages).toEqual([
      { limit: MAX, omits: false },
      { limit: 1, omits: false },
      { limit: 1, omits: true },
    ]);
  });

  it('counts no process that stopped in order', async () => {
    const starts = createMemoryStarts();
    for (let stops = 0; stops < 4; stops++) {
      const { relay, page } = await begin(starts);
      expect(page).toEqual({ limit: MAX, omits: false });
      await relay.releasePage();
    }
    expect([...starts.all]).toEqual([]);
  });

  it('counts no page that failed in a process which lives', async () => {
    const starts = createMemoryStarts();
    const { relay } = await begin(starts);
    for (let failures = 0; failures < 4; failures++) {
      await relay.releasePage();
      relay.beginTerm();
      expect(await relay.beginPage(7)).toEqual({ limit: MAX, omits: false });
    }
  });
});
