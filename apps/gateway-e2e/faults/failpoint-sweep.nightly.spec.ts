import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { FAULTS, FAULT_CASES } from './fault-cases.js';
import { createSweepWorld } from './sweep-world.js';
import type { SweepWorld } from './sweep-world.js';

jest.setTimeout(300_000);

const STILL_MS = 20_000;
/** faults.md, F1 and F2: what was accepted goes on within this. */
const RESUME_MS = 20_000;

let world: SweepWorld;
beforeAll(async () => {
  world = await createSweepWorld();
});
afterAll(() => world?.close());

const CASES = FAULTS.flatMap((fault) => FAULT_CASES.map(({ point, job }) => ({ fault, point, job })));
const nothingWrong = { lost: 0, repeated: 0, misread: 0, first: null };
const resumed: number[] = [];
let accepted = 0;

describe('a process that is broken at a failpoint', () => {
  it.each(CASES)('$fault at $point: what was accepted ends once', async ({ fault, point, job }) => {
    const swept = await world.sweep({ fault, point, job, stillMs: STILL_MS });
    accepted += swept.accepted;
    resumed.push(swept.resumedMs);
    const took = `${swept.accepted} accepted, all ended after ${Math.round(swept.resumedMs)} ms`;
    process.stdout.write(`  ${fault} at ${point}: ${swept.verdict.first ?? took}\n`);
    expect(swept.verdict).toMatchObject(nothingWrong);
  });

  it('leaves a log that the audit accepts, and nobody waiting for long', async () => {
    const { verdict, audit } = await world.judge();
    const sorted = resumed.toSorted((a, b) => a - b);
    const at = (share: number): number => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
    process.stdout.write(
      `  ${accepted} commands over ${resumed.length} faults; all ended after p50 ${at(0.5)}, p99 ${at(0.99)} ms; turns ended ${JSON.stringify(verdict.ends)}\n`,
    );
    expect(verdict).toMatchObject(nothingWrong);
    expect(audit).toMatchObject({ ok: true });
    expect(at(0.99)).toBeLessThan(RESUME_MS);
  });
});
