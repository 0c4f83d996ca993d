import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { auditUntilQuiet } from '@antiphon/testing/faults';
import {
  ALL_COMPLETE,
  assertCommandsHold,
  checkCommands,
  createSeededRandom,
  report,
  type AllowedEnds,
} from '@antiphon/testing/load';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import { createSlowModel, dropClients, readAgain, type DropsResult } from './dropped-clients.js';
import { readEvents, startStackWith, twoVendorConfig } from './stack-under-test.js';

const DROPS = Number(process.env['ANTIPHON_DROPS'] ?? 500);
/** Changes every night. Set the variable to the seed of a failed run to repeat its schedule. */
const seed = Number(process.env['ANTIPHON_TEST_SEED'] ?? Date.now() % 1_000_000);
/** A turn that its client cancels may complete before the request arrives. */
const CANCELLED: AllowedEnds = { completed: { atLeast: 0 }, cancelled: true };

/** Deletes the messages of the `LIVE` stream, as the operator. */
const purgeLive = async ({ nats }: TestStack): Promise<void> => {
  const connection = await connect({ servers: nats.url, user: nats.user, pass: nats.password });
  await (await jetstreamManager(connection)).streams.purge('LIVE');
  await connection.close();
};

const sum = <T>(list: readonly T[], valueOf: (item: T) => number): number =>
  list.reduce((total, item) => total + valueOf(item), 0);

describe(`${DROPS} drops of clients over three gateways, by seed ${seed}`, () => {
  const random = createSeededRandom(seed);
  let mock: MockModel;
  let stack: TestStack;
  let seen: DropsResult;

  beforeAll(async () => {
    mock = await startMockModel(createSlowModel(random));
    stack = await startStackWith(twoVendorConfig(mock.url), { gateway: 3, agent: 2 });
    seen = await dropClients({ stack, random, sessions: 8, drops: DROPS, killEvery: 100 });
  });
  afterAll(async () => {
    await stack?.stop();
    await mock?.close();
  });

  it('leave each client with the frames of an uninterrupted reader, byte for byte, through kills of agents', () => {
    const { sessions } = seen;
    const [drops, restarts] = [sum(sessions, (one) => one.drops), sum(sessions, (one) => one.restarts)];
    const frames = sum(sessions, (one) => one.frames);
    report(`seed ${seed}: ${drops} drops in mid-stream, ${frames} frames, ${restarts} restarts`);
    for (const { dropped, uninterrupted } of sessions) expect(dropped).toBe(uninterrupted);
    expect(drops).toBeGreaterThanOrEqual(DROPS);
    expect(restarts).toBeGreaterThan(0);
  });

  it('complete every turn that its client did not cancel', async () => {
    const events = await readEvents(stack);
    const { turns, cancelledTurns } = seen;
    assertCommandsHold('drops', checkCommands({ turns, runs: [] }, events, ALL_COMPLETE), ALL_COMPLETE);
    const cancelled = checkCommands({ turns: cancelledTurns, runs: [] }, events, CANCELLED);
    assertCommandsHold('drops, cancelled turns', cancelled, CANCELLED);
  });

  it('leave the same frames after LIVE is purged and every process restarts', async () => {
    await purgeLive(stack);
    stack = await stack.restart();
    const again = await readAgain({ stack, random }, seen.sessions);
    report(`seed ${seed}: ${sum(again, ({ drops }) => drops)} drops in finished sessions`);
    for (const [index, { assembled }] of again.entries())
      expect(assembled).toBe(seen.sessions[index]?.uninterrupted);
  });

  it('leave a log that passes the audit', async () =>
    expect((await auditUntilQuiet(stack)).output).toContain('everything holds'));
});
