import { createHash, timingSafeEqual } from 'node:crypto';
import { createBoundedMap } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';

/** Checks the gateway's token and limits the rate of failed attempts of an address. */
export interface TokenGate {
  /** False if no token is configured; local programs then need none. */
  readonly required: boolean;
  /** Compares in constant time. */
  accepts(token: string): boolean;
  /** Returns the seconds until this address may try again, 0 for now. */
  retryAfterSeconds(address: string): number;
  recordFailure(address: string): void;
}

/** Failed attempts that one address may make within the window. */
const MAX_FAILURES = 10;
const WINDOW_MS = 60_000;
const MAX_ADDRESSES = 10_000;

const digest = (token: string): Buffer => createHash('sha256').update(token).digest();

export const createTokenGate = (token: string | null, clock: Clock): TokenGate => {
  const expected = token === null ? null : digest(token);
  const failures = createBoundedMap<number[]>(MAX_ADDRESSES);

  const recent = (address: string): number[] =>
    (failures.get(address) ?? []).filter((at) => clock.now() - at < WINDOW_MS);

  return {
    required: expected !== null,
    accepts: (candidate) => expected !== null && timingSafeEqual(digest(candidate), expected),
    retryAfterSeconds: (address) => {
      const at = recent(address);
      if (at.length < MAX_FAILURES) return 0;
      return Math.max(1, Math.ceil(((at[0] ?? 0) + WINDOW_MS - clock.now()) / 1_000));
    },
    recordFailure: (address) => {
      const at = [...recent(address), clock.now()].slice(-MAX_FAILURES);
      failures.put(address, at);
    },
  };
};

/** Returns the token of an `Authorization: Bearer …` header, or undefined for any other value. */
export const bearerToken = (header: string | undefined): string | undefined =>
  /^Bearer +([\x21-\x7e]{1,4096})$/i.exec(header ?? '')?.[1];
