import type { GatewayConfig } from '@antiphon/config';
import type { Principal } from '@antiphon/contracts/identity';
import { createBoundedMap, exhausted, type BoundedMap, type Clock } from '@antiphon/kernel';

/** Length of a burst at the full rate, seconds. */
const BURST_S = 10;
/** Maximum number of keys whose use is counted, and of addresses. */
const MAX_KEYS = 10_000;

type Limits = GatewayConfig['limits'];
/** Configuration without limits. */
export const NO_LIMITS: Limits = { requestsPerSecond: 0, framesPerSecond: 0, bytesPerSecond: 0, signIns: 0 };

type Resource = 'requests' | 'frames' | 'bytes';

const RATE_OF = {
  requests: 'requestsPerSecond',
  frames: 'framesPerSecond',
  bytes: 'bytesPerSecond',
} as const satisfies Record<Resource, keyof Limits>;

/** Token bucket. The last charge of a burst may exceed it; later ones wait until it is refilled. */
class TokenBucket {
  #level: number;
  #at: number;

  constructor(
    private readonly perSecond: number,
    now: number,
  ) {
    this.#level = perSecond * BURST_S;
    this.#at = now;
  }

  /** Returns the seconds until the next charge is allowed, 0 for now. */
  waitSeconds(now: number): number {
    const gained = (Math.max(0, now - this.#at) / 1_000) * this.perSecond;
    this.#level = Math.min(this.perSecond * BURST_S, this.#level + gained);
    this.#at = now;
    return this.#level > 0 ? 0 : Math.max(1, Math.ceil(-this.#level / this.perSecond));
  }

  charge(amount: number): void {
    this.#level -= amount;
  }
}

type Buckets = Partial<Record<Resource, TokenBucket>>;

/**
 * Rate limit of each API key, together with its sessions of the dashboard: requests, WebSocket
 * frames and received bytes. The configured token and local programs are the operator's own and
 * are not limited. Requests of open routes count for the address of the client.
 */
export class RateLimits {
  readonly #limits: Limits;
  readonly #clock: Clock;
  readonly #buckets = createBoundedMap<Buckets>(MAX_KEYS);
  readonly #addresses = createBoundedMap<Buckets>(MAX_KEYS);

  constructor(limits: Limits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Charges one request. Throws `GATEWAY.RATE_LIMITED` over the limit of requests or bytes. */
  chargeRequest(principal: Principal): void {
    this.#check(principal, 'bytes');
    this.#check(principal, 'requests')?.charge(1);
  }

  /** Charges one request without a credential. Throws `GATEWAY.RATE_LIMITED` over the limit. */
  chargeAddress(group: string): void {
    const bucket = this.#find(this.#addresses, group, 'requests');
    this.#require(bucket, 'this address is over its limit of requests')?.charge(1);
  }

  /** Charges one frame with its bytes. Throws `GATEWAY.RATE_LIMITED` over either limit. */
  chargeFrame(principal: Principal, bytes: number): void {
    const received = this.#check(principal, 'bytes');
    this.#check(principal, 'frames')?.charge(1);
    received?.charge(bytes);
  }

  /** Charges bytes that were received already. Over the limit the next request is refused. */
  chargeBytes(principal: Principal, bytes: number): void {
    this.#bucketOf(principal, 'bytes')?.charge(bytes);
  }

  #check(principal: Principal, resource: Resource): TokenBucket | undefined {
    return this.#require(this.#bucketOf(principal, resource), `this key is over its limit of ${resource}`);
  }

  #require(bucket: TokenBucket | undefined, message: string): TokenBucket | undefined {
    const retryAfterSeconds = bucket?.waitSeconds(this.#clock.now()) ?? 0;
    if (retryAfterSeconds === 0) return bucket;
    throw exhausted('GATEWAY.RATE_LIMITED', message, { data: { retryAfterSeconds } });
  }

  /** Returns the bucket of a key. Its sessions name the key as their caller, and share the bucket. */
  #bucketOf({ keyId, caller }: Principal, resource: Resource): TokenBucket | undefined {
    return keyId === null ? undefined : this.#find(this.#buckets, caller, resource);
  }

  #find(all: BoundedMap<Buckets>, name: string, resource: Resource): TokenBucket | undefined {
    const perSecond = this.#limits[RATE_OF[resource]];
    if (perSecond === 0) return undefined;
    const buckets = all.get(name) ?? {};
    const bucket = buckets[resource] ?? new TokenBucket(perSecond, this.#clock.now());
    if (buckets[resource] === undefined) all.put(name, { ...buckets, [resource]: bucket });
    return bucket;
  }
}
