import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { LoggedEvent } from '../stack-under-test.js';
import { runCli } from '../stack-under-test.js';
import { REMOTE_KILLS, RemoteKills } from './remote-kills.js';
import { countOutcomes } from './tool-kills.js';

jest.setTimeout(2_400_000);

/** Number of turns, each with one kill. */
const TURNS = Number(process.env['ANTIPHON_REMOTE_KILLS'] ?? 209);

let kills: RemoteKills;
const log: LoggedEvent[] = [];
const ends: (string | undefined)[] = [];

beforeAll(async () => {
  kills = await RemoteKills.start();
  for (let turn = 0; turn < TURNS; turn++) {
    const kill = REMOTE_KILLS[turn % REMOTE_KILLS.length];
    if (!kill) throw new Error('no kill');
    const events = await kills.turn(kill);
    log.push(...events);
    ends.push(events.at(-1)?.type);
  }
});
afterAll(() => kills?.close());

describe(`calls of remote tools, with kill -9 of worker, agent, gateway or sandbox in each of ${TURNS} turns`, () => {
  it('complete each of their turns', () => expect(ends).toEqual(Array(TURNS).fill('TurnCompleted')));

  it('have one outcome each, and no repeated side effect at the target', () => {
    const tally = countOutcomes(log, kills.target);
    process.stdout.write(`  ${TURNS} turns, ${kills.killed} kills; ${JSON.stringify(tally)}\n`);
    expect(kills.killed).toBeGreaterThanOrEqual(Math.floor(TURNS * 0.9));
    expect(tally).toMatchObject({
      'once ToolCallCompleted, acted 1': expect.any(Number),
      'once ToolCallUnknown, acted 1': expect.any(Number),
      'idempotent ToolCallCompleted, acted 1': expect.any(Number),
    });
  });

  it('leave a log that passes the audit', async () => {
    const audit = await runCli(kills.stack, ['audit']);
    expect([audit.code, audit.stdout.split('\n').at(-2)]).toEqual([0, 'everything holds']);
  });
});
