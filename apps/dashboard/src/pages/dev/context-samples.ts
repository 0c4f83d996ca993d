import { EMPTY, type Transcript } from '../../data/transcript.js';
import type { Explanation } from '../../data/why.js';
import type { ContextView } from '../why/context-shares.js';
import { HOSTILE, LONG, TURN } from './samples.js';

const ID = '01a2074d-1354-7750-bd52-a2506ee67a7d';
const AT = '2026-11-23T05:00:00.000Z';

const FACT = {
  ...{ memoryId: ID, subject: 'user', predicate: 'name', object: 'Ada', tokens: 6 },
  ...{ learnedAt: AT, eventId: ID },
};
const FILE = {
  path: 'notes.md',
  digest: 'b'.repeat(64),
  size: 2_048,
  tokens: 512,
  isCut: false,
  position: 8,
};
const EARLIER = { turnId: ID, position: 4, form: 'whole', reason: null, tokens: 300 } as const;

/** A context of which every part is known. */
export const CONTEXT: ContextView = {
  ...{ sessionId: ID, turnId: 'sample-turn', agentId: 'claude', atPosition: 10 },
  ...{ attempts: [1], limitTokens: 4_000, window: 10, tokens: 1_648, promptHash: 'c'.repeat(64) },
  call: {
    ...{ attempt: 1, step: 1, tryNumber: 1, position: 12 },
    ...{ provider: 'anthropic', model: 'claude-sonnet-4' },
  },
  instructions: {
    ...{ source: 'role_file', path: 'system/roles/writer.md', digest: 'd'.repeat(64) },
    ...{ isErased: false, tokens: 200 },
  },
  identity: { tokens: 120 },
  memory: { tokens: 6, position: 9, facts: [FACT], leftOut: 0 },
  files: [FILE],
  turns: [EARLIER],
  earlierTurns: 1,
  message: { tokens: 90, received: 0, position: 10 },
  results: [{ callId: ID, name: 'calculator', tokens: 20, wholeTokens: 20 }],
  tools: [{ name: 'calculator', tokens: 400 }],
};

/** Texts that are long or hostile, in each field that a model, a file or a person can fill. */
export const HOSTILE_CONTEXT: ContextView = {
  ...CONTEXT,
  ...{ attempts: [1, 2, 3], tokens: 3_990, agentId: 'a'.repeat(64) },
  instructions: { ...CONTEXT.instructions, path: `${LONG.slice(0, 200)}${HOSTILE}` },
  memory: {
    ...{ tokens: 900, position: 9, leftOut: 1_204 },
    facts: [
      { ...FACT, subject: HOSTILE, predicate: LONG, object: HOSTILE },
      { ...FACT, memoryId: 'long', object: LONG },
    ],
  },
  files: [{ ...FILE, path: `${HOSTILE}/${LONG.slice(0, 300)}`, size: 90_000_000, isCut: true }],
  message: { tokens: 90, received: 3, position: 1_000_000 },
  results: [{ callId: ID, name: 'n'.repeat(64), tokens: 500, wholeTokens: 250_000 }],
  tools: Array.from({ length: 40 }, (_, index) => ({ name: `tool_with_a_long_name_${index}`, tokens: 40 })),
};

/** A context whose texts are gone or not permitted, and whose earlier turns did not fit. */
export const PARTIAL_CONTEXT: ContextView = {
  ...CONTEXT,
  ...{ promptHash: null, identity: null, memory: null, files: [], results: [], tools: [] },
  instructions: { ...CONTEXT.instructions, isErased: true, tokens: 0 },
  ...{ tokens: 690, earlierTurns: 214 },
  turns: [
    { ...EARLIER, turnId: 'whole' },
    { ...EARLIER, turnId: 'texts', form: 'without_tools', reason: 'room' },
    { ...EARLIER, turnId: 'large', form: 'left_out', reason: 'room', tokens: 0 },
    { ...EARLIER, turnId: 'old', form: 'left_out', reason: 'window', tokens: 0, position: null },
  ],
};

const CALL = {
  ...{ attempt: 1, step: 1, provider: 'anthropic', model: 'claude-sonnet-4', position: 12 },
  status: 'completed' as const,
  ...{ inputTokens: 1_648, outputTokens: 12, costMicroUsd: 7_176, durationMs: 900 },
  ...{ cacheReadTokens: 0, isEstimated: false },
};

export const EXPLANATION: Explanation = {
  ...{ events: [], calls: [CALL], contextPosition: 9, traceId: null, correlationId: null },
  files: [
    { path: 'notes.md', how: 'attached', position: 8 },
    { path: `${HOSTILE}/${LONG.slice(0, 300)}`, how: 'read', position: 14 },
  ],
};

export const TRANSCRIPT: Transcript = {
  ...EMPTY,
  agentId: 'claude',
  turns: [{ ...TURN, turnId: 'earlier', firstVersion: 1, firstPosition: 4 }, TURN],
};
