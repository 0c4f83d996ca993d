import { describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@antiphon/kernel';
import { inputSchemaOf } from './tool-schemas.js';

const schemaOf = (inputSchema: JsonObject, toolSchemas: 'full' | 'simple') =>
  inputSchemaOf({ name: 'echo', description: 'd', inputSchema }, { toolSchemas });
const text = { type: 'string' };

describe('the schema of a tool', () => {
  it.each([
    [{ type: 'object' }, { type: 'object', properties: {} }],
    [{}, { type: 'object', properties: {} }],
    [
      { $schema: 'x', anyOf: [{ properties: { a: text }, required: ['a'] }], properties: { b: {} } },
      { type: 'object', properties: { a: text, b: {} } },
    ],
  ])('is an object with properties: %j', (given, expected) => {
    expect(schemaOf(given, 'full')).toEqual(expected);
  });

  it('has plain keywords only where a server refuses others', () => {
    const given = {
      ...{ type: 'object', additionalProperties: false, required: ['a'] },
      properties: {
        a: { anyOf: [{ type: 'null' }, text], default: null },
        b: { type: ['integer', 'null'], minimum: 1, description: 'count' },
        c: { type: 'array', items: { const: 'x', title: 'X' } },
      },
    };
    expect(schemaOf(given, 'simple')).toEqual({
      type: 'object',
      required: ['a'],
      properties: {
        a: text,
        b: { type: 'integer', description: 'count' },
        c: { type: 'array', items: { enum: ['x'] } },
      },
    });
  });
});
