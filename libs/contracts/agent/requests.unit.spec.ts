import { describe, expect, it } from '@jest/globals';
import { MAX_CONTENT_BYTES, MessageContent, sessionKeyOf } from './requests.js';

const address = { agentId: 'support', channel: 'web', account: 'main', peer: 'alice' };

describe('sessionKeyOf', () => {
  // @shows F2
  it('returns {agent}:{channel}:{account}:{peer}', () =>
    expect(sessionKeyOf(address)).toBe('support:web:main:alice'));

  it('escapes each part, so that two addresses never share a key', () => {
    expect(sessionKeyOf({ ...address, account: 'a:b', peer: 'c' })).toBe('support:web:a%3Ab:c');
    expect(sessionKeyOf({ ...address, account: 'a', peer: 'b:c' })).toBe('support:web:a:b%3Ac');
    expect(sessionKeyOf({ ...address, peer: 'näme %' })).toBe('support:web:main:n%C3%A4me%20%25');
  });
});

describe('the content of a message', () => {
  it('is measured in bytes of UTF-8, and may have 262,144 CJK characters', () => {
    expect(MessageContent.safeParse('漢'.repeat(262_144)).success).toBe(true);
    expect(MessageContent.safeParse('漢'.repeat(262_145)).success).toBe(false);
    expect(MessageContent.safeParse('x'.repeat(MAX_CONTENT_BYTES)).success).toBe(true);
    expect(MessageContent.safeParse('x'.repeat(MAX_CONTENT_BYTES + 1)).success).toBe(false);
    expect(MessageContent.safeParse('').success).toBe(false);
  });

  it('keeps control characters, and refuses those that cannot be stored', () => {
    const controls = Array.from({ length: 0x9f }, (_, code) => String.fromCharCode(code + 1)).join('');
    expect(MessageContent.parse(controls)).toBe(controls);
    expect(MessageContent.parse('\u{1f600}')).toBe('\u{1f600}');
    for (const [text, why] of [
      ['a\0b', 'NUL'],
      ['a\ud800b', 'half of a UTF-16 pair'],
      ['\udc00\ud800', 'half of a UTF-16 pair'],
    ] as const)
      expect(MessageContent.safeParse(text).error?.issues[0]?.message).toContain(why);
  });
});
