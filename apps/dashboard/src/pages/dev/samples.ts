import type { TurnPair } from '../../data/compare.js';
import type { Turn } from '../../data/transcript.js';
import type { AskedApproval } from '../../ui/approval-card.js';

const AT = '2026-11-23T05:00:00.000Z';

/** Text without a space, and of many words. */
export const LONG = `${'x'.repeat(300)} ${'many words of a long text '.repeat(40)}`;
/** Text that must neither run, nor be fetched, nor hide a part of itself. */
export const HOSTILE =
  '<img src=x onerror="alert(1)"> ![pixel](https://evil.example/p.png) ' +
  '[click](javascript:alert(2)) pay \u202Etxt.exe \u0007';

export const APPROVAL: AskedApproval = {
  id: 'pending',
  tool: 'shell',
  input: { command: `rm -r ${LONG.slice(0, 400)}`, note: HOSTILE },
  digest: 'a'.repeat(64),
  answerBy: 'operator',
  status: 'pending',
  expiresAt: '2036-11-23T05:00:00.000Z',
  answeredBy: null,
  reason: null,
};

export const EDIT_APPROVAL: AskedApproval = {
  ...APPROVAL,
  ...{ id: 'edit', tool: 'edit', input: { path: 'src/sum.ts', old: 'a - b', new: 'a + b' } },
  preview: `--- a/src/sum.ts\n+++ b/src/sum.ts\n@@ -1,2 +1,2 @@\n export const sum = (a, b) =>\n-  a - b;\n+  a + b; // ${HOSTILE}`,
};

const text = (position: number, said: string): Turn['items'][number] => ({
  ...{ kind: 'text', text: said, length: said.length, provider: 'sample', model: 'sample-model', position },
});

const call = (
  position: number,
  status: 'completed' | 'failed' | 'running',
  result: string | null,
): Turn['items'][number] => ({
  ...{ kind: 'tool', callId: `call-${position}`, name: 'calculator', input: { expression: '40 + 2' } },
  ...{ status, result: result === null ? null : { text: result, length: result.length } },
  ...{ isError: status === 'failed', durationMs: 12, approval: null },
  ...{ position, requestPosition: position, endPosition: null },
});

const received = (from: string): Turn['items'][number] => ({
  ...{ kind: 'received', from, text: '""', length: 2, position: 17 },
});

export const TURN: Turn = {
  ...{ turnId: 'sample-turn', status: 'completed', model: 'sample-model' },
  message: {
    ...{ text: `What is 40 + 2? ${HOSTILE}`, length: 15, at: AT },
    ...{ editedAt: null, isDeleted: false, position: 10 },
  },
  items: [
    { kind: 'thought', text: 'The sum of two numbers.', length: 23, position: 12 },
    text(12, 'Let me see.'),
    call(13, 'completed', '42'),
    call(14, 'failed', LONG),
    call(15, 'running', null),
    {
      ...{ kind: 'aborted', reason: 'provider_error', message: 'overloaded' },
      ...{ text: '', length: 0, position: 16 },
    },
    ...['a', 'b'].map(received),
    text(18, 'It is **42**.'),
  ],
  ...{ answerEditedAt: null, isAnswerDeleted: false, cutBy: null, error: null },
  ...{ endedAt: AT, endVersion: 9, endPosition: 20 },
  usage: { calls: 2, inputTokens: 1_204, outputTokens: 12, costMicroUsd: 7_176 },
  ...{ firstVersion: 2, lastVersion: 9, firstPosition: 10, lastPosition: 20 },
};

export const PAIR: TurnPair = {
  key: 'sample',
  a: TURN,
  b: {
    ...TURN,
    ...{ turnId: 'other-turn', model: 'other-model', items: [text(12, 'It is **43**.')] },
    usage: { ...TURN.usage, costMicroUsd: 9_100 },
  },
  differs: ['model', 'answer', 'tools', 'cost'],
};
