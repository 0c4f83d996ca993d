import { describe, expect, it } from '@jest/globals';
import { raceForOutside } from '../../testing/swap-race.js';

const TRIES = Number(process.env['ANTIPHON_FILE_RACES'] ?? 100_000);

describe('a safe folder in a race', () => {
  it('touches nothing outside in 100,000 tries while a folder is exchanged for a link', async () => {
    const race = await raceForOutside(TRIES);
    process.stdout.write(`${JSON.stringify(race)}\n`);
    expect(race).toMatchObject({ tries: TRIES, outside: 0 });
    expect(race.done).toBeGreaterThan(TRIES / 100);
    expect(race.swaps).toBeGreaterThan(TRIES / 10);
  }, 1_500_000);
});
