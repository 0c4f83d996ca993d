import { describe, expect, it } from '@jest/globals';
import { checkCommands, settledFrames } from './check-commands.js';
import type { LoggedFact } from './check-commands.js';
import type { TakenTurn } from './keyed-turn.js';

const TURN = '7a0c3f9e-0000-4000-8000-000000000001';
const fact = (type: string, data: Record<string, unknown>): LoggedFact => ({
  streamId: 'session-s',
  type,
  data: { turnId: TURN, ...data },
});
const LOG = [
  fact('SessionStarted', { sessionId: 's', agentId: 'main', sessionKey: 'k' }),
  fact('TurnRequested', { content: 'hello key-1' }),
  fact('ModelCallStarted', { attempt: 1, tryNumber: 1 }),
  fact('ModelCallCompleted', {
    ...{ attempt: 1, text: 'hi', thought: '', toolCalls: [], model: 'm', costMicroUsd: null },
    ...{ frames: [{ kind: 'text', length: 2 }], usage: { inputTokens: 1, outputTokens: 1 } },
  }),
  fact('TurnCompleted', {}),
];
const ATTEMPT = 2 ** 20;
const USAGE = { input_tokens: 1, output_tokens: 1, cost_usd: null, model: 'm' };
const taken: TakenTurn = {
  ...{ key: 'key-1', peer: 'p', content: 'hello key-1', sessionId: 's', turnId: TURN, sent: 1 },
  frames: [
    { event: 'accepted', data: {}, offset: ATTEMPT },
    { event: 'text', data: 'hi', offset: ATTEMPT + 1 },
    { event: 'usage', data: USAGE, offset: ATTEMPT + 2 },
    { event: 'done', data: { status: 'completed', turnId: TURN }, offset: ATTEMPT + 3 },
  ],
};
const judge = (log: readonly LoggedFact[], turn: TakenTurn = taken) =>
  checkCommands({ turns: [turn], runs: [] }, log);

describe('commands that were accepted', () => {
  it('are in order when the log has each once, ended once, as the client saw it', () =>
    expect(judge(LOG)).toMatchObject({ lost: 0, repeated: 0, misread: 0, first: null }));

  it('are lost when the log does not have them, or not their end', () => {
    expect(judge([]).lost).toBe(2);
    expect(judge(LOG.slice(0, -1)).lost).toBe(1);
  });

  it('are repeated when the log has one twice, or its end twice', () => {
    expect(judge([...LOG, fact('TurnRequested', { content: 'hello key-1' })]).repeated).toBe(1);
    expect(judge([...LOG, fact('TurnCompleted', {})]).repeated).toBe(1);
  });

  it('are misread by a client that missed a frame, or saw one twice', () => {
    expect(
      judge(LOG, { ...taken, frames: taken.frames.filter(({ event }) => event !== 'text') }).misread,
    ).toBe(1);
    expect(judge(LOG, { ...taken, frames: taken.frames.flatMap((frame) => [frame, frame]) }).misread).toBe(1);
  });

  it('forget what a restart made void', () => {
    const [accepted, ...rest] = taken.frames;
    const lost = { event: 'text', data: 'h', offset: 5 };
    const restart = { event: 'restart', data: { offset: 5 }, offset: 6 };
    expect(settledFrames([lost, restart, ...rest])).toEqual([restart, ...rest]);
    const frames = accepted ? [accepted, lost, ...rest] : [];
    expect(judge(LOG, { ...taken, frames }).misread).toBe(1);
  });
});
