import { createHash, timingSafeEqual } from 'node:crypto';
import type { GatewayConfig } from '@antiphon/config';
import type { Principal } from '@antiphon/contracts/identity';
import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import { createBoundedMap, type Clock } from '@antiphon/kernel';
import { addressGroup, createClientAddress, type ReadClientAddress } from './client-address.js';
import type { Identities } from './identities.port.js';
import { RateLimits } from './rate-limits.js';
import { SessionCookie } from './session-cookie.js';
import { SignInLimits } from './sign-in-limits.js';

const operator = (caller: string): Principal => ({
  caller,
  workspace: DEFAULT_WORKSPACE,
  role: 'admin',
  scopes: null,
  keyId: null,
  name: null,
  agentId: null,
  expiresAt: null,
});
/** Local operator of the default workspace: a program on this machine that needs no credential. */
export const LOCAL_OPERATOR = operator('local');
/** Holder of the configured token. */
export const TOKEN_HOLDER = operator('token');

/** Prefix of API keys. A credential without it is no API key. */
const KEY_PREFIX = 'ak_';
/** Failed attempts that one address may make within the window. */
const MAX_FAILURES = 10;
const WINDOW_MS = 60_000;
const MAX_ADDRESSES = 10_000;

const digest = (token: string): Buffer => createHash('sha256').update(token).digest();

/** Result of an attempt to authenticate. */
export interface Attempt {
  /** Null for a credential that is not valid. */
  readonly principal: Principal | null;
  /** Seconds until the address may fail again, 0 while it is under its limit. */
  readonly retryAfterSeconds: number;
}

export interface AuthenticatorOptions {
  readonly gateway: Pick<GatewayConfig, 'token' | 'loopbackWithoutToken' | 'trustedProxies' | 'limits'> &
    Partial<Pick<GatewayConfig, 'allowedOrigins'>>;
  readonly identities: Identities;
  readonly clock: Clock;
  /** Path of the home, which the name of the dashboard's cookie has. */
  readonly home?: string;
}

/**
 * Authenticates credentials: the configured token and API keys. Failed attempts of an address never
 * refuse a valid credential. Only failures are counted and limited, by address group.
 */
export class Authenticator {
  /** Principal of a request without a credential; null if every request needs one. */
  readonly local: Principal | null;
  /** Origins of foreign pages that may use the API, with a credential of their own. */
  readonly allowedOrigins: ReadonlySet<string>;
  /** Returns the client's address, also behind a trusted proxy. */
  readonly clientAddress: ReadClientAddress;
  /** Rate limits of the principals. */
  readonly limits: RateLimits;
  /** Limits of sign-ins. */
  readonly signIns: SignInLimits;
  /** Cookie of the dashboard's sessions. */
  readonly cookie: SessionCookie;
  readonly #identities: Identities;
  readonly #clock: Clock;
  readonly #expected: Buffer | null;
  readonly #failures = createBoundedMap<number[]>(MAX_ADDRESSES);

  constructor({ gateway, identities, clock, home = '' }: AuthenticatorOptions) {
    this.cookie = new SessionCookie(home);
    this.local = gateway.token === null && gateway.loopbackWithoutToken ? LOCAL_OPERATOR : null;
    this.allowedOrigins = new Set(gateway.allowedOrigins);
    this.clientAddress = createClientAddress(gateway.trustedProxies);
    this.limits = new RateLimits(gateway.limits, clock);
    this.signIns = new SignInLimits(gateway.limits.signIns, clock);
    this.#identities = identities;
    this.#clock = clock;
    this.#expected = gateway.token === null ? null : digest(gateway.token);
  }

  /** Authenticates the cookie of a dashboard. A wrong one counts as a failure of its address. */
  async authenticateSession(cookie: string, address: string): Promise<Attempt> {
    const principal = await this.#identities.authenticateSession(cookie, 'session');
    if (principal) return { principal, retryAfterSeconds: 0 };
    return { principal: null, retryAfterSeconds: this.#recordFailure(addressGroup(address)) };
  }

  /** Authenticates a credential of an address, and records the attempt if it fails. */
  async authenticate(credential: string, address: string): Promise<Attempt> {
    const principal = await this.#principalOf(credential);
    if (principal) return { principal, retryAfterSeconds: 0 };
    return { principal: null, retryAfterSeconds: this.#recordFailure(addressGroup(address)) };
  }

  /**
   * Authenticates the credential of a foreign page. Such a page is never the local operator, who
   * needs no credential.
   */
  async authenticateForeign(credential: string, address: string): Promise<Attempt> {
    const attempt = await this.authenticate(credential, address);
    return attempt.principal === LOCAL_OPERATOR ? { ...attempt, principal: null } : attempt;
  }

  #principalOf(credential: string): Principal | null | Promise<Principal | null> {
    if (this.#expected !== null && timingSafeEqual(digest(credential), this.#expected)) return TOKEN_HOLDER;
    // Programs such as OpenAI's clients always send some key, which a local gateway ignores.
    if (this.local && !credential.startsWith(KEY_PREFIX)) return this.local;
    return this.#identities.authenticate(credential);
  }

  #recordFailure(group: string): number {
    const now = this.#clock.now();
    const recent = (this.#failures.get(group) ?? []).filter((at) => now - at < WINDOW_MS);
    const oldest = recent[0] ?? now;
    if (recent.length >= MAX_FAILURES) return Math.max(1, Math.ceil((oldest + WINDOW_MS - now) / 1_000));
    this.#failures.put(group, [...recent, now]);
    return 0;
  }
}

/** Returns the token of an `Authorization: Bearer …` header, or undefined for any other value. */
export const bearerToken = (header: string | undefined): string | undefined =>
  /^Bearer +([\x21-\x7e]{1,4096})$/i.exec(header ?? '')?.[1];
