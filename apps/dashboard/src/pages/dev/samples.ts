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

const CALL = { input: { expression: '40 + 2' }, durationMs: 12, approval: null } as const;

export const TURN: Turn = {
  ...{ turnId: 'sample-turn', content: `What is 40 + 2? ${HOSTILE}`, requestedAt: AT, position: 10 },
  ...{
    version: 2,
    endVersion: 9,
    endPosition: 20,
    endedAt: AT,
    status: 'completed',
    textLength: 10,
    model: 'sample-model',
  },
  ...{
    inputTokens: 1_204,
    outputTokens: 12,
    costMicroUsd: 7_176,
    cacheReadTokens: 0,
    isEstimated: false,
    isEdited: false,
    deleted: [],
  },
  parts: [
    { kind: 'text', key: 'a', text: 'Let me see.', thought: 'The sum of two numbers.' },
    {
      ...{ kind: 'tool', key: 'b', callId: 'b', name: 'calculator', status: 'completed', output: '42' },
      ...CALL,
    },
    { kind: 'tool', key: 'c', callId: 'c', name: 'calculator', status: 'failed', output: LONG, ...CALL },
    { kind: 'tool', key: 'd', callId: 'd', name: 'calculator', status: 'running', output: null, ...CALL },
    { kind: 'note', key: 'e', text: 'Model call failed: overloaded', isBad: true },
    { kind: 'note', key: 'f', text: '2 messages of other agents', isBad: false },
    { kind: 'text', key: 'g', text: 'It is **42**.', thought: '' },
  ],
};

export const PAIR: TurnPair = {
  key: 'sample',
  a: TURN,
  b: {
    ...TURN,
    turnId: 'other-turn',
    model: 'other-model',
    costMicroUsd: 9_100,
    parts: [{ kind: 'text', key: 'g', text: 'It is **43**.', thought: '' }],
  },
  differs: ['model', 'answer', 'tools', 'cost'],
};
