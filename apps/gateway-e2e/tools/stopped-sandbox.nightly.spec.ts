import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { ToolKills, countOutcomes } from './tool-kills.js';
import type { ToolRequest } from './tool-kills.js';
import { TARGET_HOST } from './counting-target.js';
import { giveTimeToFail } from '@antiphon/testing/waits';

jest.setTimeout(240_000);

/** NATS gives about half of the calls to each of the two sandbox processes. */
const CALLS = 8;

let tools: ToolKills;
beforeAll(async () => {
  tools = await ToolKills.start({ scale: { sandbox: 2 }, watchesHealth: false });
});
afterAll(() => tools?.close());

const calls = (turn: string): ToolRequest[] =>
  Array.from({ length: CALLS }, (_, n) => ({
    name: 'once-a',
    input: { url: `http://${TARGET_HOST}/act?of=${turn}&n=${n}` },
  }));

describe('tool calls that a suspended sandbox process has received', () => {
  it('have no effect after their recorded outcomes, once the process resumes', async () => {
    await tools.turn(calls('before'), []);
    const [{ pid } = { pid: null }] = tools.stack.stackJson().services.sandbox;
    process.kill(Number(pid), 'SIGSTOP');
    const { events } = await tools.turn(calls('suspended'), []);
    const effects = new Map(tools.target.requests);
    const tally = countOutcomes(events, tools.target);
    process.kill(Number(pid), 'SIGCONT');
    await giveTimeToFail(5_000);
    expect(events.at(-1)).toMatchObject({ type: 'TurnCompleted' });
    expect(tally).toMatchObject({ 'once ToolCallUnknown, acted 0': expect.any(Number) });
    expect(tools.target.requests).toEqual(effects);
    // The process serves calls again.
    const { events: after } = await tools.turn(calls('after'), []);
    expect(countOutcomes(after, tools.target)).toEqual({ 'once ToolCallCompleted, acted 1': CALLS });
  });
});
