import { describe, expect, it } from '@jest/globals';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import { MANY_TOOLS, TOOL_ASKS } from '../testing/many-tools.js';
import { rankTools } from './rank-tools.js';

const namesOf = (tools: readonly ToolDescription[], query: string): string[] =>
  rankTools(tools, query).map(({ name }) => name);

describe('rankTools', () => {
  it('finds the right one of 500 tools in the first five for at least 95 of 100 asks', () => {
    expect(MANY_TOOLS).toHaveLength(500);
    expect(new Set(MANY_TOOLS.map(({ name }) => name)).size).toBe(500);
    expect(TOOL_ASKS).toHaveLength(100);
    const known = new Set(MANY_TOOLS.map(({ name }) => name));
    expect(TOOL_ASKS.filter(([, tool]) => !known.has(tool))).toEqual([]);
    const missed = TOOL_ASKS.filter(([ask, tool]) => !namesOf(MANY_TOOLS, ask).slice(0, 5).includes(tool));
    expect(TOOL_ASKS.length - missed.length).toBeGreaterThanOrEqual(95);
  });

  it('returns nothing for words that no tool has, and for a query of stop words', () => {
    expect(namesOf(MANY_TOOLS, 'qwertyuiop')).toEqual([]);
    expect(namesOf(MANY_TOOLS, 'the tool which you have')).toEqual([]);
    expect(namesOf([], 'weather')).toEqual([]);
  });

  it('ranks the same in any order of the tools', () => {
    const shuffled = [...MANY_TOOLS].reverse();
    expect(namesOf(shuffled, 'delete a file')).toEqual(namesOf(MANY_TOOLS, 'delete a file'));
  });

  it('reads a tool with a hostile schema in linear time', () => {
    const hostile: ToolDescription = {
      ...{ name: 'hostile', description: 'a'.repeat(4_000), idempotent: true, moduleDigest: '', grants: [] },
      inputSchema: { properties: { x: null, y: 7, z: { description: { a: 1 } }, constructor: 'a' } },
    };
    const startedAt = performance.now();
    expect(namesOf([hostile], 'hostile')).toEqual(['hostile']);
    expect(performance.now() - startedAt).toBeLessThan(200);
  });
});
