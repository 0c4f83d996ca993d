import { describe, expect, it } from '@jest/globals';
import { isAppError } from '@antiphon/kernel';
import { parseDefinition } from './parse-definition.js';

const refusal = (source: Parameters<typeof parseDefinition>[0]): string => {
  try {
    parseDefinition(source);
    return '';
  } catch (error) {
    if (!isAppError(error)) throw error;
    return `${error.code} ${error.message}`;
  }
};
const node = { id: 'a', agent: 'main', prompt: 'hi' };

describe('parseDefinition', () => {
  it('parses YAML, JSON text and JSON to the same definition', () => {
    const read = parseDefinition('name: w\nnodes:\n  - { id: a, agent: main, prompt: hi }\n');
    expect(read).toEqual({
      name: 'w',
      inputs: {},
      nodes: [{ ...node, needs: [], attempts: 3 }],
    });
    expect(parseDefinition(JSON.stringify({ name: 'w', nodes: [node] }))).toEqual(read);
    expect(parseDefinition({ name: 'w', nodes: [node] })).toEqual(read);
  });

  it('rejects a definition with all problems, their lines and paths', () => {
    const text = refusal(
      'name: w\nnodes:\n  - id: a\n    agent: main\n    prompt: ""\n    when: now\n  - id: 1x\n',
    );
    expect(text).toMatch(/^WORKFLOW.INVALID/);
    expect(text).toContain('line 5: nodes[0].prompt: ');
    expect(text).toContain('line 7: nodes[1].id: must be a letter');
    expect(text).toContain('"when"');
  });

  it.each([
    ['text that is no YAML', 'name: [', /line 1/],
    ['an alias', 'name: &a w\ndescription: *a\nnodes: []', /alias/],
    ['a second key of the same name', 'name: w\nname: x\nnodes: []', /line 2/],
    ['brackets that nest too deep', `name: ${'['.repeat(5_000)}`, /levels deep/],
    ['lists that nest too deep', '- '.repeat(5_000), /levels deep/],
    [
      'keys that nest too deep',
      Array.from({ length: 500 }, (_, i) => `${' '.repeat(i)}a:`).join('\n'),
      /levels deep/,
    ],
    ['no object', 'just text', /expected object/],
    ['two documents', 'name: w\n---\nname: x', /document/],
  ])('is refused for %s', (_, source, why) => {
    expect(refusal(source)).toMatch(/^WORKFLOW.INVALID/);
    expect(refusal(source)).toMatch(why);
  });

  it('ignores keys named like a prototype', () => {
    const source = '{"name":"w","nodes":[{"id":"a","agent":"main","prompt":"hi"}],"inputs":{"__proto__":{}}}';
    expect(Object.keys(parseDefinition(source).inputs)).toEqual([]);
  });

  it('rejects a definition over the size limit', () =>
    expect(refusal({ name: 'w', nodes: [{ ...node, prompt: 'x'.repeat(300_000) }] })).toMatch(
      /characters long/,
    ));
});
