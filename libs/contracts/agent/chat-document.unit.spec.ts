import { describe, expect, it } from '@jest/globals';
import { ChatTranscript, toMarkdown } from './chat-document.js';
import type { ChatDocument } from './chat-document.js';
import type { SessionEvent } from './events.js';

const ID = '0192f0c1-7a2b-7c3d-8e4f-00000000000';
const [ONE, TWO, CALL] = [`${ID}1`, `${ID}2`, `${ID}3`];
const at = '2026-11-22T10:00:00.000Z';
const CHAT = {
  ...{ id: `${ID}9`, name: 'tides', path: 'tides.chat', agentId: 'main', role: null },
  ...{ sessionId: `${ID}8`, createdAt: at },
};

const event = (type: SessionEvent['type'], data: object): SessionEvent =>
  ({ type, schemaVersion: 1, data }) as SessionEvent;
const turn = (turnId: string, content: string, text: string, toolCalls: object[] = []): SessionEvent[] => [
  event('TurnRequested', { turnId, content, requestedAt: at }),
  event('ModelCallCompleted', { turnId, text, toolCalls, completedAt: at }),
];
const done = (turnId: string): SessionEvent => event('TurnCompleted', { turnId, completedAt: at });

const read = (events: readonly SessionEvent[]): ChatDocument => {
  const transcript = new ChatTranscript();
  for (const [index, one] of events.entries()) transcript.apply(one, index + 1);
  return transcript.toDocument(CHAT);
};
const markdown = (events: readonly SessionEvent[]): string => toMarkdown(read(events));

const CALLED = { callId: CALL, providerCallId: 'c', name: 'calculator', input: { expression: '6*7' } };

describe('the text of a chat', () => {
  it('has every message with its id, the tool calls with their results, and the end of each turn', () => {
    const text = markdown([
      ...turn(ONE, 'What is 6 times 7?', 'Let me see.', [CALLED]),
      event('ToolCallCompleted', { turnId: ONE, callId: CALL, content: '42', isError: false }),
      event('ModelCallCompleted', { turnId: ONE, text: 'It is 42.', toolCalls: [], completedAt: at }),
      done(ONE),
      event('TurnRequested', { turnId: TWO, content: 'And 6 times 9?', requestedAt: at }),
      event('TurnFailed', {
        turnId: TWO,
        code: 'X',
        cause: { kind: 'text', text: 'no budget' },
        failedAt: at,
      }),
    ]);
    expect(text).toBe(`# tides

<!-- ${ONE} -->

## You · ${at}

What is 6 times 7?

<!-- ${ONE}-answer -->

## main · ${at}

> call \`calculator\` {"expression":"6*7"}
> result: 42

Let me see.

It is 42.

<!-- ${TWO} -->

## You · ${at}

And 6 times 9?

<!-- ${TWO}-answer -->

## main · ${at}

_(failed: no budget)_
`);
  });

  it('shows the new text of an edited message, and nothing of a deleted one', () => {
    const edits = [
      event('ChatMessageEdited', { turnId: ONE, part: 'message', content: 'new', actor: 'a', at }),
      event('ChatMessageDeleted', { turnId: ONE, part: 'answer', actor: 'a', at }),
    ];
    const document = read([...turn(ONE, 'old secret', 'an answer', [CALLED]), done(ONE), ...edits]);
    expect(document.messages).toEqual([
      { id: ONE, role: 'user', at, text: 'new', editedAt: at },
      { id: `${ONE}-answer`, role: 'agent', at, status: 'completed', text: '', deletedAt: at },
    ]);
    expect(toMarkdown(document)).not.toMatch(/old secret|an answer|calculator/);
  });

  it('has the partial text of a stopped answer and none of an attempt that began again', () => {
    const aborted = (reason: string, text: string) =>
      event('ModelCallAborted', { turnId: ONE, reason, text, abortedAt: at });
    const text = markdown([
      event('TurnRequested', { turnId: ONE, content: 'go', requestedAt: at }),
      aborted('provider_error', 'void'),
      aborted('cancelled', 'half of '),
      event('TurnCancelled', { turnId: ONE, cancelledAt: at }),
    ]);
    expect(text).toContain('half of \n\n_(stopped)_');
    expect(text).not.toContain('void');
  });

  it('lists the newest snapshot of each attached file', () => {
    const attached = (digest: string) =>
      event('ChatFileAttached', { path: 'a.md', digest, size: 3, actor: 'a', at });
    expect(read([attached('one'), attached('two')]).attachments).toEqual([
      { path: 'a.md', digest: 'two', size: 3 },
    ]);
  });

  it('is equal to the fold of the first N events at each of 1,000 versions, however it was read', () => {
    const events: SessionEvent[] = [event('SessionStarted', {})];
    for (let n = 0; events.length < 1_000; n++) {
      const turnId = `0192f0c1-7a2b-7c3d-8e4f-${String(n).padStart(12, '0')}`;
      events.push(...turn(turnId, `question ${n}`, `answer ${n}`), done(turnId));
      const change = { turnId, part: n % 2 ? 'answer' : 'message', actor: 'a', at };
      if (n % 3 === 0) events.push(event('ChatMessageEdited', { ...change, content: `edited ${n}` }));
      if (n % 5 === 0) events.push(event('ChatMessageDeleted', change));
    }
    const shared = new ChatTranscript();
    for (let version = 1; version <= 1_000; version++) {
      // A reader that comes late applies some events again.
      for (let from = Math.max(1, version - 3); from <= version; from++)
        shared.apply(events[from - 1] as SessionEvent, from);
      const incremental = toMarkdown(shared.toDocument(CHAT));
      if (version % 7 === 0 || version === 1_000)
        expect(incremental).toBe(markdown(events.slice(0, version)));
    }
  });
});
