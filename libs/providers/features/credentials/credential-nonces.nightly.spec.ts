import { describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { masterKeyIdOf, sealSecret } from './credential-cipher.js';

const key = randomBytes(32);
const master = { id: masterKeyIdOf(key), key };
const place = { workspace: 'default', provider: 'openai', credentialId: 'one' };
const COUNT = Number(process.env['ANTIPHON_SEALED_SECRETS'] ?? 1_000_000);

describe(`${COUNT.toLocaleString('en')} sealed secrets`, () => {
  it('repeat no nonce under the master key, and no data key', () => {
    const nonces = new Set<string>();
    const wrapped = new Set<string>();
    for (let n = 0; n < COUNT; n++) {
      const { dataKey } = sealSecret('sk-secret', place, master);
      const text = Buffer.from(dataKey).toString('latin1');
      nonces.add(text.slice(1, 13));
      wrapped.add(text.slice(29));
    }
    expect([nonces.size, wrapped.size]).toEqual([COUNT, COUNT]);
  });
});
