import { describe, expect, it } from '@jest/globals';
import { ChatRenderer } from './chat.command.js';
import { decisionOf, renderChatEvent } from './interactive-chat.js';

const render = (...frames: readonly (readonly [event: string, data: unknown])[]): string => {
  const renderer = new ChatRenderer();
  return frames.map(([event, data]) => renderer.render({ event, data, offset: 0 })).join('');
};

const NOTE = '\n[the answer starts again]\n';

describe('ChatRenderer', () => {
  it('announces a restart after text of the same model call', () =>
    expect(render(['text', 'Hel'], ['restart', { offset: 1 }], ['text', 'Hello'])).toBe(`Hel${NOTE}Hello`));

  it('announces no restart before any text', () =>
    expect(render(['accepted', {}], ['restart', { offset: 1 }], ['text', 'Hello'])).toBe('Hello'));

  it('announces no restart when the text belongs to a completed model call', () =>
    expect(
      render(
        ['text', 'First. '],
        ['tool_use', { name: 'echo', input: {} }],
        ['usage', {}],
        ['tool_result', { content: 'hi' }],
        ['restart', { offset: 9 }],
        ['text', 'Second.'],
      ),
    ).toBe('First. [echo {}]\n[= hi]\nSecond.'));

  it('announces each restart once', () =>
    expect(render(['text', 'a'], ['restart', {}], ['restart', {}], ['text', 'b'])).toBe(`a${NOTE}b`));

  it.each([
    [{ status: 'completed', cut_by: 'length' }, '\n[cut: the answer reached its output limit]\n'],
    [
      { status: 'completed', cut_by: 'content_filter' },
      '\n[cut: a filter of the provider ended the answer]\n',
    ],
    [{ status: 'completed' }, '\n'],
    [{ status: 'failed' }, '\n[failed]\n'],
  ])('shows the end %j', (data, text) => {
    expect(renderChatEvent({ id: '1', event: 'done', data })).toBe(text);
  });

  it('shows the change of files that an approval is about, also in an interactive chat', () => {
    const preview = '--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n-a\n+b';
    const data = { approvalId: '1', name: 'edit', input: {}, preview };
    expect(render(['approval', data])).toContain(`${preview}\n[waits for an approval`);
    expect(renderChatEvent({ id: '1', event: 'approval', data })).toContain(`[edit]\n${preview}\n`);
  });
});

describe('the decision of an approval in a chat', () => {
  const event = (data: Record<string, unknown>) => ({ id: undefined, event: 'approval', data });

  it('has the digest of the call that was shown', () =>
    expect(decisionOf(event({ approvalId: 'a', digest: 'd', name: 'rm' }), true)).toEqual({
      ...{ command: 'approve', approvalId: 'a', digest: 'd' },
    }));

  it('is a denial without the approval of the person', () =>
    expect(decisionOf(event({ approvalId: 'a' }), false)).toEqual({ command: 'deny', approvalId: 'a' }));
});
