import { describe, expect, it } from '@jest/globals';
import { schemaRows } from './schema-rows.js';

const object = (properties: object, required: readonly string[] = []) => ({
  ...{ type: 'object', properties, required },
});

describe('the rows of a JSON Schema', () => {
  it('name each value with its type, limits and text, those of an object after it', () => {
    const step = object({ text: { type: 'string', maxLength: 200 }, state: { enum: ['done', 'failed'] } }, [
      'text',
    ]);
    const schema = object(
      {
        path: { type: 'string', description: 'Path of the plan.', pattern: '^p' },
        steps: { type: 'array', items: step, minItems: 1 },
        priority: { type: 'integer', minimum: 0, maximum: 9, default: 4 },
        evidence: { anyOf: [object({ tool: { type: 'string' } }, ['tool']), { type: 'null' }] },
      },
      ['path', 'steps'],
    );
    const row = (path: string, type: string, isRequired: boolean, limits = '', text = '') => ({
      ...{ path, type, isRequired, limits, text },
    });
    expect(schemaRows(schema)).toEqual([
      row('path', 'string', true, 'matches ^p', 'Path of the plan.'),
      row('steps', 'object[]', true, 'at least 1 entries'),
      row('steps[].text', 'string', true, 'at most 200 characters'),
      row('steps[].state', '"done" or "failed"', false),
      row('priority', 'integer', false, 'at least 0, at most 9, default 4'),
      row('evidence', 'object or null', false),
      row('evidence.tool', 'string', true),
    ]);
  });

  it('are bounded for the schema of any plug-in', () => {
    let deep: object = { type: 'string' };
    for (let depth = 0; depth < 500; depth++) deep = object({ more: { type: 'array', items: deep } });
    expect(schemaRows(deep).length).toBeLessThan(10);
    const wide = Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`v${n}`, { type: 'string' }]));
    expect(schemaRows(object(wide))).toHaveLength(200);
    const [row] = schemaRows(object({ v: { description: 'x'.repeat(9_999), enum: Array(99).fill('a') } }));
    expect(row?.text.length).toBeLessThan(600);
    expect(row?.type.length).toBeLessThan(100);
  });

  it.each([[null], ['text'], [[]], [{ properties: [1] }], [{ properties: { a: 1 } }], [{ anyOf: 'x' }]])(
    'are none for %j',
    (schema) => expect(schemaRows(schema)).toEqual([]),
  );
});
