import { describe, expect, it } from '@jest/globals';
import { sessionKeyOf } from './requests.js';

const address = { agentId: 'support', channel: 'web', account: 'main', peer: 'alice' };

describe('sessionKeyOf', () => {
  it('returns {agent}:{channel}:{account}:{peer}', () =>
    expect(sessionKeyOf(address)).toBe('support:web:main:alice'));

  it('escapes each part, so that two addresses never share a key', () => {
    expect(sessionKeyOf({ ...address, account: 'a:b', peer: 'c' })).toBe('support:web:a%3Ab:c');
    expect(sessionKeyOf({ ...address, account: 'a', peer: 'b:c' })).toBe('support:web:a:b%3Ac');
    expect(sessionKeyOf({ ...address, peer: 'näme %' })).toBe('support:web:main:n%C3%A4me%20%25');
  });
});
