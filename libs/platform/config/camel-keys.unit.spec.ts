import { describe, expect, it } from '@jest/globals';
import { camelKeys } from './camel-keys.js';

describe('camelKeys', () => {
  it('maps keys at every depth, and keeps values and absent keys', () =>
    expect(
      camelKeys({
        max_files: 3,
        limits: { sign_ins: 0 },
        list: [{ read_chats: false }],
        none: null,
        v1: ['a_b'],
      }),
    ).toEqual({
      maxFiles: 3,
      limits: { signIns: 0 },
      list: [{ readChats: false }],
      none: null,
      v1: ['a_b'],
    }));

  it('gives seconds in milliseconds', () =>
    expect(camelKeys({ body_timeout_s: 30, timeout_ms: 5 })).toEqual({
      bodyTimeoutMs: 30_000,
      timeoutMs: 5,
    }));

  it('names the unit of money, which the schema gives in micro-dollars', () =>
    expect(camelKeys({ usd: 1, daily_usd: 2, input_per_mtok: 3 })).toEqual({
      microUsd: 1,
      dailyMicroUsd: 2,
      inputMicroUsdPerMtok: 3,
    }));
});
