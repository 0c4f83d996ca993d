import { FIXED_PROVIDER_LIMITS } from '../transport/provider-call.js';
import type { ProviderLimits } from '../transport/provider-call.js';

/** Limits of calls to a remote provider, for tests. */
export const TEST_LIMITS: ProviderLimits = {
  ...FIXED_PROVIDER_LIMITS,
  ...{ connectMs: 10_000, firstByteMs: 60_000, idleMs: 60_000, totalMs: 600_000 },
  retryTimeouts: true,
  ownerOf: () => 'provider it',
};
