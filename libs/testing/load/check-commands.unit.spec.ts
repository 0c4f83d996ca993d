import { describe, expect, it } from '@jest/globals';
import { effectiveFrames } from '../client/frames.js';
import { ALL_COMPLETE, checkCommands, formatEnds } from './check-commands.js';
import type { AllowedEnds, LoggedFact } from './check-commands.js';
import type { EndedRun } from './run-to-end.js';
import type { SentTurn } from './send-turn.js';

const TURN = '7a0c3f9e-0000-4000-8000-000000000001';
const RUN = '7a0c3f9e-0000-4000-8000-000000000002';
const fact = (type: string, data: Record<string, unknown>): LoggedFact => ({
  streamId: 'session-s',
  type,
  data: { turnId: TURN, ...data },
});
const BEGUN = [
  fact('SessionStarted', { sessionId: 's', agentId: 'main', sessionKey: 'k' }),
  fact('TurnRequested', { content: 'hello key-1' }),
  fact('ModelCallStarted', { attempt: 1, tryNumber: 1 }),
  fact('ModelCallCompleted', {
    ...{ attempt: 1, text: 'hi', thought: '', toolCalls: [], model: 'm', costMicroUsd: null },
    ...{ frames: [{ kind: 'text', length: 2 }], usage: { inputTokens: 1, outputTokens: 1 } },
  }),
];
const LOG = [...BEGUN, fact('TurnCompleted', {})];
const ATTEMPT = 2 ** 20;
const USAGE = { input_tokens: 1, output_tokens: 1, cost_usd: null, model: 'm' };
const command = { key: 'key-1', peer: 'p', content: 'hello key-1', sessionId: 's', turnId: TURN, sent: 1 };
const BEGUN_FRAMES = [
  { event: 'accepted', data: {}, offset: ATTEMPT },
  { event: 'text', data: 'hi', offset: ATTEMPT + 1 },
  { event: 'usage', data: USAGE, offset: ATTEMPT + 2 },
];
const sent: SentTurn = {
  ...command,
  end: 'completed',
  frames: [
    ...BEGUN_FRAMES,
    { event: 'done', data: { status: 'completed', turnId: TURN }, offset: ATTEMPT + 3 },
  ],
};
const judge = (log: readonly LoggedFact[], turn: SentTurn = sent, allowed: AllowedEnds = ALL_COMPLETE) =>
  checkCommands({ turns: [turn], runs: [] }, log, allowed);

describe('checkCommands', () => {
  it('finds no problem when the log has each command once, ended once, as its client saw it', () =>
    expect(judge(LOG)).toMatchObject({
      ...{ lost: 0, repeated: 0, misread: 0, disallowed: 0, problems: [], first: null },
      ...{ ends: { completed: 1 }, completedShare: 1 },
    }));

  it('counts a command as lost when the log lacks it or its end', () => {
    expect(judge([]).lost).toBe(2);
    expect(judge(BEGUN).lost).toBe(1);
  });

  it('counts a command as repeated when the log has it or its end twice', () => {
    expect(judge([...LOG, fact('TurnRequested', { content: 'hello key-1' })]).repeated).toBe(1);
    expect(judge([...LOG, fact('TurnCompleted', {})]).repeated).toBe(1);
  });

  it('counts a client as misread when it misses a frame or saw one twice', () => {
    expect(judge(LOG, { ...sent, frames: sent.frames.filter(({ event }) => event !== 'text') }).misread).toBe(
      1,
    );
    expect(judge(LOG, { ...sent, frames: sent.frames.flatMap((frame) => [frame, frame]) }).misread).toBe(1);
  });

  it('ignores frames that a restart voids', () => {
    const [accepted, ...rest] = sent.frames;
    const lost = { event: 'text', data: 'h', offset: 5 };
    const restart = { event: 'restart', data: { offset: 5 }, offset: 6 };
    expect(effectiveFrames([lost, restart, ...rest])).toEqual([restart, ...rest]);
    const frames = accepted ? [accepted, lost, ...rest] : [];
    expect(judge(LOG, { ...sent, frames }).misread).toBe(1);
  });
});

describe('the allowed ends of checkCommands', () => {
  const code = 'TURN.DRIVER_LOST';
  const error = { code, message: 'lost' };
  const failedLog = [...BEGUN, fact('TurnFailed', { code, cause: { kind: 'text', text: 'lost' } })];
  const failed: SentTurn = {
    ...command,
    end: code,
    frames: [
      ...BEGUN_FRAMES,
      { event: 'error', data: error, offset: ATTEMPT + 3 },
      { event: 'done', data: { status: 'failed', turnId: TURN }, offset: ATTEMPT + 4 },
    ],
  };
  const cancelledLog = [...BEGUN, fact('TurnCancelled', {})];
  const cancelled: SentTurn = {
    ...command,
    end: 'cancelled',
    frames: [
      ...BEGUN_FRAMES,
      { event: 'done', data: { status: 'cancelled', turnId: TURN }, offset: ATTEMPT + 3 },
    ],
  };

  it('reject a failure whose code is not named, and name the turn', () => {
    const verdict = judge(failedLog, failed, { completed: { atLeast: 0 }, failed: ['PROVIDER.TIMEOUT'] });
    expect(verdict).toMatchObject({ lost: 0, repeated: 0, misread: 0, disallowed: 1, ends: { [code]: 1 } });
    expect(verdict.first).toBe(`disallowed: turn ${TURN} (key key-1) ends ${code}`);
  });

  it('accept a failure whose code is named, as long as the completed share is reached', () => {
    expect(judge(failedLog, failed, { completed: { atLeast: 0 }, failed: [code] }).problems).toEqual([]);
    expect(judge(failedLog, failed, { completed: { atLeast: 0.99 }, failed: [code] })).toMatchObject({
      ...{ disallowed: 0, completedShare: 0 },
      first: '0 of the turns completed, at least 0.99 must',
    });
  });

  it('reject a cancelled turn unless cancellation is allowed', () => {
    expect(judge(cancelledLog, cancelled, { completed: { atLeast: 0 } }).disallowed).toBe(1);
    expect(judge(cancelledLog, cancelled, { completed: { atLeast: 0 }, cancelled: true }).problems).toEqual(
      [],
    );
  });

  it.each([
    ['completed', false, 0],
    ['failed', false, 1],
    ['cancelled', false, 1],
    ['cancelled', true, 0],
    ['failed', true, 1],
  ])('judge a run that ends %s, cancellation requested: %s', (status, cancelRequested, disallowed) => {
    const run: EndedRun = { key: 'k', runId: RUN, status, cancelRequested };
    const log = [
      { streamId: `run-${RUN}`, type: 'RunStarted', data: { inputs: { key: 'k' } } },
      { streamId: `run-${RUN}`, type: 'RunFailed', data: {} },
    ];
    expect(checkCommands({ turns: [], runs: [run] }, log, ALL_COMPLETE)).toMatchObject({
      ...{ lost: 0, repeated: 0, disallowed, runEnds: { [status]: 1 } },
    });
  });

  it('are printed with the share', () => {
    const allowed = { completed: { atLeast: 0.99 }, failed: [code] };
    expect(formatEnds(judge(failedLog, failed, allowed), allowed)).toBe(
      `0 of 1 turns completed (0.00 %, at least 99.00 %); {"${code}":1}`,
    );
  });
});
