import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { textOf } from '@antiphon/testing/client';
import { report } from '@antiphon/testing/load';
import {
  assemble,
  readUninterrupted,
  runThroughDrops,
  startDropWorld,
  type DropRun,
  type DropWorld,
  type Runtime,
} from './client-drops.js';

const sessionsOf = ({ seen }: DropRun): string[] => [
  ...new Set(seen.turns.map(({ sessionId }) => sessionId)),
];

const describeRuntime = (runtime: Runtime, drops: number, world: () => DropWorld): void => {
  describe(`the client library in ${runtime}`, () => {
    let run: DropRun;
    beforeAll(async () => {
      run = await runThroughDrops(world(), runtime, drops);
      const { turns, positions, drops: lost } = run.seen;
      report(
        `${runtime}: ${lost} drops in mid-stream, ${turns.length} turns, ${positions.length} events read`,
      );
    }, 900_000);

    it(`shows each conversation as an uninterrupted reader, byte for byte, after ${drops} drops`, async () => {
      expect(run.seen.drops).toBeGreaterThanOrEqual(drops);
      for (const sessionId of sessionsOf(run)) {
        const frames = run.seen.turns
          .filter((turn) => turn.sessionId === sessionId)
          .flatMap((turn) => turn.frames);
        const lastOffset = frames.at(-1)?.offset ?? 0;
        expect(assemble(frames)).toBe(await readUninterrupted(world(), sessionId, lastOffset));
      }
    });

    it('ends each turn with one done, and returns its text without void parts', () => {
      for (const { frames, text } of run.seen.turns) {
        expect(frames.filter(({ event }) => event === 'done')).toEqual([frames.at(-1)]);
        expect(frames.filter(({ event }) => event === 'accepted')).toHaveLength(1);
        expect(text).toBe(textOf(frames));
      }
    });

    it('sends each message once', () => {
      const own = new Set(sessionsOf(run).map((id) => `session-${id}`));
      const requested = run.events
        .filter(({ type, streamId }) => type === 'TurnRequested' && own.has(streamId))
        .map(({ data }) => data['content']);
      expect([...requested].sort()).toEqual(run.seen.turns.map(({ content }) => content).sort());
    });

    it('reads every event of the log once and in order', () => {
      const { positions } = run.seen;
      const last = positions.at(-1) ?? 0;
      const logged = run.events.map(({ position }) => position).filter((position) => position <= last);
      expect(positions).toEqual(logged);
    });
  });
};

/** Describes the library in Node and in a browser, each with this number of drops. */
export const describeClientDrops = (drops: number): void => {
  const seed = Number(process.env['ANTIPHON_TEST_SEED'] ?? Date.now() % 1_000_000);
  describe(`${drops} drops over three gateways, by seed ${seed}`, () => {
    let world: DropWorld;
    beforeAll(async () => {
      world = await startDropWorld(seed);
    }, 120_000);
    afterAll(() => world?.stop());
    describeRuntime('Node', drops, () => world);
    describeRuntime('a browser', drops, () => world);
  });
};
