import { describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { masterKeyIdOf, openSecret, sealSecret } from './credential-cipher.js';
import type { SealedSecret } from './credential-cipher.js';

const key = randomBytes(32);
const master = { id: masterKeyIdOf(key), key };
const place = { workspace: 'default', provider: 'openai', credentialId: 'one' };
const SECRET = 'sk-canary-of-the-cipher';

const flip = (bytes: Uint8Array, bit: number): Uint8Array<ArrayBuffer> => {
  const flipped = new Uint8Array(bytes);
  flipped[bit >> 3]! ^= 1 << (bit & 7);
  return flipped;
};

describe('a sealed secret', () => {
  it('with any flipped bit of its ciphertext or data key is refused, without a part of the secret', () => {
    const sealed = sealSecret(SECRET, place, master);
    expect(openSecret(sealed, place, [master])).toBe(SECRET);
    for (const part of ['ciphertext', 'dataKey'] as const)
      for (let bit = 0; bit < sealed[part].length * 8; bit++) {
        const changed: SealedSecret = { ...sealed, [part]: flip(sealed[part], bit) };
        let caught: unknown;
        try {
          openSecret(changed, place, [master]);
        } catch (error) {
          caught = error;
        }
        expect(caught).toMatchObject({ code: 'CREDENTIAL.UNREADABLE' });
        expect(JSON.stringify(caught) + String(caught)).not.toContain('canary');
      }
  });
});
