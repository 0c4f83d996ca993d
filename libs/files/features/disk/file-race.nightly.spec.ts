import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase } from '@antiphon/testing';
import { createAgentWorld, testConfig } from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { raceToolsForOutside, startCopy } from '../testing/copied-files.js';
import { raceFolderForOutside, raceForOutside } from '../testing/swap-race.js';
import type { RaceResult } from '../testing/swap-race.js';

/** Tries of all races together. */
const TRIES = Number(process.env['ANTIPHON_FILE_RACES'] ?? 100_000);
/** Tries of each part through the copy of a tree, and through the tools of an agent. */
const COPY_TRIES = Math.round(TRIES / 100);
const TOOL_ROUNDS = Math.round(TRIES / 500);
const FOLDER_TRIES = TRIES / 2 - COPY_TRIES - 3 * TOOL_ROUNDS;
const MAX_MS = 1_500_000;

const check = (race: RaceResult, leastSwaps: number): void => {
  process.stdout.write(`${JSON.stringify(race)}\n`);
  expect(race.outside).toBe(0);
  expect(race.done).toBeGreaterThan(race.tries / 100);
  expect(race.swaps).toBeGreaterThan(leastSwaps);
};

// @shows chats-C11
describe.each(['folder', 'file'] as const)('100,000 tries while a %s is exchanged for a link', (part) => {
  let world: AgentWorld;
  let agent: TestProcess;
  beforeAll(async () => {
    world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
    agent = world.process({ config: testConfig({ tools: ['read', 'write', 'rm'] }) });
  }, 60_000);
  afterAll(() => world?.close(), 30_000);

  it(
    'touch nothing outside of a safe folder',
    async () => {
      check(await raceForOutside(FOLDER_TRIES, part), FOLDER_TRIES / 10);
    },
    MAX_MS,
  );

  it(
    'touch nothing outside of the copy of a tree',
    async () => {
      check(await raceFolderForOutside(COPY_TRIES, part), COPY_TRIES / 10);
    },
    MAX_MS,
  );

  it(
    'touch nothing outside through the tools of an agent',
    async () => {
      const copy = await startCopy(world, agent);
      try {
        check(await raceToolsForOutside(world, agent, copy, { rounds: TOOL_ROUNDS, part }), TOOL_ROUNDS);
      } finally {
        await copy.stop();
      }
    },
    MAX_MS,
  );
});
