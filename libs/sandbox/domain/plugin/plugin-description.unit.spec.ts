import { describe, expect, it } from '@jest/globals';
import { parseDescription, undescribed, grantedHosts, ungrantable } from '@antiphon/sandbox-domain';

const describing = (value: unknown) => parseDescription(new TextEncoder().encode(JSON.stringify(value)));

describe('describe()', () => {
  it('gives description, schema and whether the tool is idempotent', () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } };
    expect(describing({ description: 'Adds.', input_schema: schema, idempotent: true })).toEqual({
      ok: true,
      description: { description: 'Adds.', inputSchema: schema, idempotent: true },
    });
  });

  it('counts a tool as not idempotent unless it says so', () =>
    expect(describing({ description: 'Sends.' })).toMatchObject({
      description: { inputSchema: { type: 'object' }, idempotent: false },
    }));

  it('may be missing', () => expect(undescribed('x').idempotent).toBe(false));

  it('makes its texts fit for the log', () =>
    expect(describing({ description: 'a\0b' })).toMatchObject({ description: { description: 'a\ufffdb' } }));

  it.each([
    ['no JSON', new TextEncoder().encode('hello'), 'JSON object'],
    ['a list', new TextEncoder().encode('[]'), 'JSON object'],
    ['no description', new TextEncoder().encode('{}'), '"description"'],
    [
      'a schema of a string',
      new TextEncoder().encode('{"description":"x","input_schema":{"type":"string"}}'),
      'input_schema',
    ],
    [
      'a schema that is a list',
      new TextEncoder().encode('{"description":"x","input_schema":[]}'),
      'input_schema',
    ],
    [
      'idempotent as a word',
      new TextEncoder().encode('{"description":"x","idempotent":"yes"}'),
      'idempotent',
    ],
    ['100,000 levels', new TextEncoder().encode(`{"description":${'['.repeat(60_000)}`), 'too deeply'],
    ['a flood', new Uint8Array(70_000), 'at most'],
    ['bytes that are no text', Uint8Array.from([0xff, 0xfe, 0]), 'JSON object'],
  ])('is refused with %s', (_, output, reason) => {
    const result = parseDescription(output);
    expect(result).toMatchObject({ ok: false });
    expect(!result.ok && result.reason).toContain(reason);
  });
});

describe('capabilities', () => {
  it('can be none, or hosts', () => {
    expect(ungrantable([])).toBeNull();
    expect(ungrantable(['http:api.example.com'])).toBeNull();
    expect(grantedHosts(['http:API.example.com', 'store:notes'])).toEqual(new Set(['api.example.com']));
  });

  it.each([
    ['store:notes', 'store is not available yet'],
    ['gpu:0', 'unknown type "gpu"'],
    ['', 'unknown type ""'],
  ])('%s is refused clearly', (capability, reason) => expect(ungrantable([capability])).toContain(reason));
});
