import { createHash } from 'node:crypto';
import type { JsonObject } from '@antiphon/kernel';
import type { IdempotencyClaim } from '../event-store.port.js';
import { canonicalJson } from '../integrity/event-hash.js';

/** Returns the SHA-256 (hex) of a value's RFC 8785 form. */
export const digestOf = (value: object): string =>
  createHash('sha256')
    .update(canonicalJson(value as JsonObject))
    .digest('hex');

/**
 * Returns the claim of a request with an idempotency key; without a key, nothing. A later request
 * with the same key gets `response` if its body has the same values, and else a refusal.
 */
export const claimOf = (
  scope: string,
  key: string | undefined,
  body: object,
  response: object,
): IdempotencyClaim | undefined =>
  key === undefined ? undefined : { scope, key, digest: digestOf(body), response: response as JsonObject };
