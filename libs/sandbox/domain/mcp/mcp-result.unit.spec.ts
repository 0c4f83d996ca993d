import { describe, expect, it } from '@jest/globals';
import { renderMcpResult } from './mcp-result.js';
import type { McpBlock } from './mcp-result.js';

const render = (content: readonly McpBlock[], structuredContent?: unknown, maxBytes = 10_000) =>
  renderMcpResult({ content, structuredContent, isError: false }, maxBytes);
const text = (value: string): McpBlock => ({ type: 'text', text: value });

describe('the result of an MCP tool', () => {
  it('is its texts, with its structured content unless a text has that', () => {
    expect(render([text('a'), text('b')])).toMatchObject({ content: 'a\nb', isError: false });
    expect(render([text('a')], { x: 1 })).toMatchObject({ content: 'a\n{"x":1}' });
    expect(render([text('{ "x": 1 }')], { x: 1 })).toMatchObject({ content: '{ "x": 1 }' });
  });

  it('names content that is no text, with its size', () => {
    const data = Buffer.alloc(1_000).toString('base64');
    const blob = { uri: 'x://a', blob: data, mimeType: 'application/pdf' };
    const content = [
      { type: 'image', data, mimeType: 'image/png' },
      { type: 'resource', resource: blob },
      { type: 'resource', resource: { uri: 'x://b', text: 'words' } },
      { type: 'resource_link', uri: 'x://c', name: 'c' },
      { type: 'hologram' },
    ];
    expect((render(content) as { content: string }).content.split('\n')).toEqual([
      '[image of type image/png with 1000 bytes is left out: a tool result is text]',
      '[resource x://a]',
      '[data of type application/pdf with 1000 bytes is left out: a tool result is text]',
      '[resource x://b]',
      'words',
      '[link to the resource x://c, named c]',
      '[content of the unknown kind hologram is left out]',
    ]);
  });

  it('is refused above its limit in UTF-8, and is text that the log can store', () => {
    expect(render([text('é'.repeat(5_000))])).toMatchObject({ outcome: 'completed' });
    expect(render([text('é'.repeat(5_001))])).toMatchObject({
      ...{ outcome: 'failed', code: 'TOOL.OUTPUT', cause: { bytes: 10_002, max: 10_000 } },
    });
    const { content } = render([text('a\u0000b\ud800')]) as { content: string };
    expect(content).not.toContain('\u0000');
    expect(content.isWellFormed()).toBe(true);
  });
});
