import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { seeded } from '@antiphon/testing/load';
import { FAULT_CASES } from './fault-cases.js';
import { createSweepWorld } from './sweep-world.js';
import type { SweepWorld } from './sweep-world.js';

jest.setTimeout(180_000);

const seed = Number(process.env['ANTIPHON_TEST_SEED'] ?? Date.now() % 1_000_000);
const chance = seeded(seed);
const turns = FAULT_CASES.filter(({ job }) => job === 'turn');
const runs = FAULT_CASES.filter(({ job }) => job === 'run');
const SAMPLE = [chance.pick(turns), chance.pick(turns), chance.pick(runs)];

let world: SweepWorld;
beforeAll(async () => {
  world = await createSweepWorld();
});
afterAll(() => world?.close());

describe(`a sample of the sweep, by seed ${seed}`, () => {
  it.each(SAMPLE)('kill -9 at $point: what was accepted ends once', async ({ point, job }) => {
    const { verdict } = await world.sweep({ point, job, fault: 'kill9', stillMs: 0 });
    expect(verdict).toMatchObject({ lost: 0, repeated: 0, misread: 0, first: null });
  });

  it('leaves a log that the audit accepts', async () =>
    expect((await world.judge()).audit).toMatchObject({ ok: true }));
});
