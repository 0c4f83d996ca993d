import { describe, expect, it } from '@jest/globals';
import type { FILE_INPUT } from './file-schemas.js';
import { NATIVE_DESCRIPTIONS } from './tool-schemas.js';

/** Required and optional arguments of each tool for files. */
const ARGUMENTS: Readonly<Record<keyof typeof FILE_INPUT, readonly [string[], string[]]>> = {
  ls: [[], ['path', 'recursive', 'bin', 'ignored', 'from', 'limit']],
  read: [['path'], ['from', 'lines']],
  write: [
    ['path', 'content'],
    ['executable', 'removes'],
  ],
  edit: [[], ['path', 'old', 'new', 'removes', 'edits']],
  rm: [['path'], ['files']],
  move: [['path', 'to'], []],
  search: [['query'], ['path', 'regex', 'ignore_case', 'ignored', 'from', 'limit']],
};

describe('the schema that a model gets', () => {
  it.each(Object.entries(ARGUMENTS))(
    'of %s has its arguments and no others',
    (name, [required, optional]) => {
      const { inputSchema, description } = NATIVE_DESCRIPTIONS.get(name) ?? {};
      expect(description?.length).toBeGreaterThan(10);
      expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false });
      expect(Object.keys((inputSchema?.['properties'] ?? {}) as object).sort()).toEqual(
        [...required, ...optional].sort(),
      );
      expect(inputSchema?.['required'] ?? []).toEqual(required);
    },
  );

  it('has the bounds of its arguments, and what they mean', () => {
    const { properties } = NATIVE_DESCRIPTIONS.get('read')?.inputSchema as { properties: object };
    expect(properties).toMatchObject({
      path: { type: 'string', minLength: 1, maxLength: 1_024, description: expect.stringContaining('root') },
      lines: { type: 'integer', minimum: 1, maximum: 5_000, default: 1_000 },
    });
  });
});
