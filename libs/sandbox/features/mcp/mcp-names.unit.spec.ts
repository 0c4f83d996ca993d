import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { digestOfTool, mcpToolName } from './mcp-names.js';

describe('the name of a tool of an MCP server', () => {
  it('has the names of its server and of the tool where agents can use them', () => {
    expect(mcpToolName('files', 'read_file')).toBe('mcp__files__read_file');
    expect(mcpToolName('files', 'a.b')).toMatch(/^mcp__files__a_b_[0-9a-f]{8}$/);
    expect(mcpToolName('files', 'x'.repeat(100))).toMatch(/^mcp__files__x+_[0-9a-f]{8}$/);
    expect(mcpToolName('files', 'x'.repeat(100))).toHaveLength(64);
  });

  it('is one that models take, and of one tool alone', () => {
    const server = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?$/);
    const tool = fc.string({ minLength: 1, maxLength: 200, unit: 'binary' });
    fc.assert(
      fc.property(server, server, tool, tool, (a, b, one, other) => {
        const [first, second] = [mcpToolName(a, one), mcpToolName(b, other)];
        expect(first).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
        expect(first === second).toBe(a === b && one === other);
      }),
    );
  });
});

describe('the digest of a tool', () => {
  const hints = { isReadOnly: false, isIdempotent: false };
  const tool = { name: 'a', description: 'Does it.', inputSchema: { type: 'object', title: 'x' }, hints };

  it('is that of its name, description, schema and hints, in any order of keys', () => {
    const digest = digestOfTool(tool);
    expect(digestOfTool({ ...tool, inputSchema: { title: 'x', type: 'object' } })).toBe(digest);
    const changes = [
      { name: 'b' },
      { description: 'Does it. ' },
      { inputSchema: { type: 'object' } },
      { hints: { ...hints, isIdempotent: true } },
    ];
    for (const change of changes) expect(digestOfTool({ ...tool, ...change })).not.toBe(digest);
  });
});
