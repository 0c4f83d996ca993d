import { describe, expect, it } from '@jest/globals';
import type { z } from 'zod';
import { SessionEvent } from './events.js';
import { DELETED_FIELDS, withoutDeletedTexts } from './session-history.js';

const TURN = '01a208ab-7a2f-7536-a368-730ee977c5c9';

/** Fields without text that a person or a model wrote in the answer. */
const KEPT = new Set([
  ...['name', 'provider', 'model', 'agentId', 'caller', 'digest', 'moduleDigest', 'idempotencyKey', 'code'],
  ...['answeredBy', 'answeredByName', 'grants', 'chain', 'role', 'policy', 'usage', 'retry', 'path', 'actor'],
  ...['sessionId', 'chatId', 'by', 'prompt', 'generationId', 'stored'],
]);

/** Returns the schema below optional and nullable ones. */
const unwrap = (schema: z.core.$ZodType): z.core.$ZodType => {
  const { def } = schema._zod as { def: { innerType?: z.core.$ZodType } };
  return def.innerType ? unwrap(def.innerType) : schema;
};

const holdsText = (schema: z.core.$ZodType): boolean => {
  const { def } = unwrap(schema)._zod as { def: { type: string; format?: string } };
  if (def.type === 'string') return def.format === undefined;
  return !['number', 'boolean', 'enum', 'literal', 'null'].includes(def.type);
};

const fieldsOf = (type: string): readonly string[] => [
  ...((DELETED_FIELDS.answer as Record<string, readonly string[]>)[type] ?? []),
  ...((DELETED_FIELDS.message as Record<string, readonly string[]>)[type] ?? []),
];

describe('the events of a deleted answer', () => {
  const turnEvents = SessionEvent.options.filter(({ shape }) => 'turnId' in shape.data.shape);

  it.each(turnEvents.map((option) => [option.shape.type.value, option] as const))(
    '%s has no field with text that a deletion would leave',
    (type, option) => {
      const fields = Object.entries(option.shape.data.shape as Record<string, z.core.$ZodType>);
      const texts = fields.filter(([name, schema]) => !KEPT.has(name) && holdsText(schema));
      // The cause of a failed turn stays, as in the lists of turns, and that of a wait.
      if (type === 'TurnFailed' || type === 'TurnBlocked')
        expect(texts.map(([name]) => name)).toEqual(['cause']);
      else expect(fieldsOf(type)).toEqual(expect.arrayContaining(texts.map(([name]) => name)));
    },
  );

  it('lose their texts, and keep the rest', () => {
    const data = { turnId: TURN, callId: 'c', name: 'write', input: { path: 'a', text: 'secret' } };
    const deleted = [{ turnId: TURN, part: 'answer' as const }];
    expect(withoutDeletedTexts('ToolCallRequested', data, deleted)).toEqual({ ...data, input: {} });
    const other = [{ turnId: 'other', part: 'answer' as const }];
    expect(withoutDeletedTexts('ToolCallRequested', data, other)).toEqual(data);
    expect(withoutDeletedTexts('ToolCallRequested', data, [{ turnId: TURN, part: 'message' }])).toEqual(data);
  });

  it('lose the text of the part that was edited only', () => {
    const edited = { turnId: TURN, part: 'answer', content: 'secret' };
    const removed = (part: 'message' | 'answer') =>
      withoutDeletedTexts('ChatMessageEdited', edited, [{ turnId: TURN, part }])['content'];
    expect(removed('answer')).toBe('');
    expect(removed('message')).toBe('secret');
  });
});
