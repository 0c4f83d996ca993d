import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, jest } from '@jest/globals';
import { TEXTS } from '@antiphon/contracts/causes';
import { EVENT_CONTRACTS, UPCASTERS, currentFormOf, upcast } from '@antiphon/contracts/events';
import type { RecordedEvent } from '../event-store.port.js';
import { verifyChain } from './event-hash.js';

/** Events as a release before causes wrote them, with the hashes of that release. Never edited. */
const FIXTURE = join(import.meta.dirname, 'fixtures/log-before-causes.jsonl');
/** Hash of the last event of each event stream, by its category. */
const HEADS = {
  session: 'b2a3c473158c4f3c6897210833577a5149a2771a5e023f66679185626dadf5cc',
  task: '6d36c950ac630af05157d1539c7782797704c7ab91a4027eb4341a6c02f7f388',
  workflow: '71f08d0bba28867907804c203e3b6bea69774a1cb23e350bec25aa0bd88a42f8',
  plan: 'd7f973bb336fd69579b3997716e4295926e34874391f04d01075e41fc6456e4d',
  run: 'bd4520a6e287b794014e982ee89ac54a580c06e05420a0f3aa72c85093be4404',
};

const stored = readFileSync(FIXTURE, 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as RecordedEvent);
const streams = [...Map.groupBy(stored, ({ category }) => category)];
const headsOf = (all: typeof streams) =>
  Object.fromEntries(
    all.map(([category, events]) => {
      const verdict = verifyChain(events);
      return [category, verdict.isIntact ? verdict.hash : verdict.reason];
    }),
  );

describe('a log that an earlier release wrote', () => {
  it('has the hash chains that this release had recorded', () => {
    expect(headsOf(streams)).toEqual(HEADS);
  });

  it('has each event type that is upcast now', () => {
    const types = new Set(stored.map(({ type }) => type));
    expect(UPCASTERS.filter(({ type }) => !types.has(type))).toEqual([]);
  });

  it('is read in the current form, and has the same hash chains afterwards', () => {
    for (const event of stored) {
      const read = upcast(event);
      const contract = EVENT_CONTRACTS.find(({ type }) => type === event.type);
      expect([event.type, read.schemaVersion]).toEqual([event.type, currentFormOf(event.type)]);
      expect(contract?.schema.safeParse(read).error).toBeUndefined();
    }
    expect(headsOf(streams)).toEqual(HEADS);
  });

  it('has the same hash chains where each text is worded differently', () => {
    for (const kind of Object.keys(TEXTS) as (keyof typeof TEXTS)[])
      jest.spyOn(TEXTS, kind).mockReturnValue(`${kind} in another wording`);
    stored.forEach((event) => upcast(event));
    expect(headsOf(streams)).toEqual(HEADS);
    jest.restoreAllMocks();
  });

  it('is verified as it was written: its content in the current form has other hashes', () => {
    const read = streams.map(([category, events]) => [category, events.map(upcast)] as const);
    expect(headsOf(read as typeof streams)).toMatchObject({ session: 'its content does not have its hash' });
  });
});
