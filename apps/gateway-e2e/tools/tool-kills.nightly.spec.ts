import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createSeededRandom } from '@antiphon/testing/load';
import { anthropicFaults } from '@antiphon/testing/providers';
import type { LoggedEvent } from '../stack-under-test.js';
import { runCli } from '../stack-under-test.js';
import { ToolKills, chooseKills, countOutcomes } from './tool-kills.js';

jest.setTimeout(1_200_000);

/** Each turn has its calls in one step, of which eight run at a time. */
const TURNS = Number(process.env['ANTIPHON_TOOL_TURNS'] ?? 19);
const CALLS = 11;
const seed = Number(process.env['ANTIPHON_TEST_SEED'] ?? 209);

let tools: ToolKills;
const log: LoggedEvent[] = [];
/** Type of the last event of each turn. */
const ends: (string | undefined)[] = [];
let killed = 0;

beforeAll(async () => {
  tools = await ToolKills.start();
  const random = createSeededRandom(seed);
  for (let turn = 0; turn < TURNS; turn++) {
    const done = await tools.turn(CALLS, chooseKills(random, CALLS));
    log.push(...done.events);
    killed += done.killed;
    ends.push(done.events.at(-1)?.type);
  }
});
afterAll(() => tools?.close());

describe('209 tool calls, with the agent and the sandbox killed at random points', () => {
  it('complete each of their turns', () => expect(ends).toEqual(Array(TURNS).fill('TurnCompleted')));

  it('have one outcome each, and no repeated side effect at the target', async () => {
    const requested = log.filter(({ type }) => type === 'ToolCallRequested');
    expect(requested.length).toBe(TURNS * CALLS);
    const tally = countOutcomes(log, tools.target);
    process.stdout.write(
      `  seed ${seed}: ${requested.length} calls, ${killed} kills; ${JSON.stringify(tally)}\n`,
    );
    expect(killed).toBeGreaterThanOrEqual(TURNS);
    // Both kinds were made, and some calls were interrupted.
    expect(tally).toMatchObject({
      'once ToolCallCompleted, acted 1': expect.any(Number),
      'once ToolCallUnknown, acted 1': expect.any(Number),
      'idempotent ToolCallCompleted, acted 1': expect.any(Number),
    });
  });

  it('leave well-formed requests to the provider, and a log that passes the audit', async () => {
    for (const { seen } of tools.mock.calls) expect(anthropicFaults(seen.body)).toEqual([]);
    const audit = await runCli(tools.stack, ['audit']);
    expect([audit.code, audit.stdout.split('\n').at(-2)]).toEqual([0, 'everything holds']);
  });
});
