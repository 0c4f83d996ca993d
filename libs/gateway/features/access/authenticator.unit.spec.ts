import { describe, expect, it } from '@jest/globals';
import type { Principal } from '@antiphon/contracts/identity';
import { Authenticator, bearerToken, LOCAL_OPERATOR, TOKEN_HOLDER } from './authenticator.js';
import { addressGroup, createClientAddress } from './client-address.js';
import { NO_IDENTITIES, type Identities } from './identities.port.js';
import { NO_LIMITS } from './rate-limits.js';

const TOKEN = 'a-token-of-more-than-32-characters';
const clock = { at: 1_000_000, now: () => clock.at };

const create = (
  gateway: Partial<{ token: string | null; loopbackWithoutToken: boolean }> = {},
  identities: Identities = NO_IDENTITIES,
) =>
  new Authenticator({
    gateway: { token: TOKEN, loopbackWithoutToken: true, trustedProxies: [], limits: NO_LIMITS, ...gateway },
    identities,
    clock,
  });

describe('Authenticator', () => {
  it('accepts its token and nothing else', async () => {
    const authenticator = create();
    expect(authenticator.local).toBeNull();
    for (const wrong of [TOKEN.slice(1), `${TOKEN} `, '', TOKEN.toUpperCase()])
      expect(await authenticator.authenticate(wrong, wrong)).toEqual({
        principal: null,
        retryAfterSeconds: 0,
      });
    expect((await authenticator.authenticate(TOKEN, 'a')).principal).toBe(TOKEN_HOLDER);
  });

  // @shows review1-1
  it('accepts the right token after 20 wrong ones from the same address', async () => {
    const authenticator = create();
    const waits: number[] = [];
    for (let i = 0; i < 20; i++)
      waits.push((await authenticator.authenticate(`wrong-${i}`, '10.0.0.1')).retryAfterSeconds);
    expect(waits).toEqual([...Array.from({ length: 10 }, () => 0), ...Array.from({ length: 10 }, () => 60)]);
    expect((await authenticator.authenticate(TOKEN, '10.0.0.1')).principal).toBe(TOKEN_HOLDER);
    expect((await authenticator.authenticate('wrong', '10.0.0.2')).retryAfterSeconds).toBe(0);
    clock.at += 60_000;
    expect((await authenticator.authenticate('wrong', '10.0.0.1')).retryAfterSeconds).toBe(0);
  });

  it('counts the failures of an IPv6 /64 together', async () => {
    const authenticator = create();
    for (let i = 0; i < 10; i++) await authenticator.authenticate('wrong', `2001:db8:0:1::${i}`);
    expect((await authenticator.authenticate('wrong', '2001:db8:0:1:ffff::1')).retryAfterSeconds).toBe(60);
    expect((await authenticator.authenticate('wrong', '2001:db8:0:2::1')).retryAfterSeconds).toBe(0);
  });

  it('serves local programs without a token, also those that send another vendor’s key', async () => {
    const authenticator = create({ token: null });
    expect(authenticator.local).toBe(LOCAL_OPERATOR);
    expect((await authenticator.authenticate('sk-none', '127.0.0.1')).principal).toBe(LOCAL_OPERATOR);
    expect((await authenticator.authenticate('ak_unknown', '127.0.0.1')).principal).toBeNull();
  });

  it('requires a credential of local programs if loopback_without_token is false', () =>
    expect(create({ token: null, loopbackWithoutToken: false }).local).toBeNull());

  it('gives an API key its own principal', async () => {
    const viewer: Principal = { ...LOCAL_OPERATOR, caller: 'key/k', role: 'viewer', keyId: 'k' };
    const identities = { ...NO_IDENTITIES, authenticate: () => Promise.resolve(viewer) };
    for (const gateway of [{}, { token: null }])
      expect((await create(gateway, identities).authenticate('ak_k_s', 'a')).principal).toBe(viewer);
  });
});

describe('the client’s address', () => {
  const read = createClientAddress(['10.0.0.0/8', 'fd00::/8', '192.0.2.7']);

  it('is the peer if the peer is no trusted proxy, with any headers', () => {
    expect(read('203.0.113.1', { 'x-forwarded-for': '198.51.100.1' })).toBe('203.0.113.1');
    expect(createClientAddress([])('10.0.0.1', { 'x-forwarded-for': '198.51.100.1' })).toBe('10.0.0.1');
  });

  it.each([
    [{ 'x-forwarded-for': '198.51.100.1' }, '198.51.100.1'],
    [{ 'x-forwarded-for': '1.1.1.1, 198.51.100.1, 10.9.9.9' }, '198.51.100.1'],
    [{ 'x-forwarded-for': '198.51.100.1:4711' }, '198.51.100.1'],
    [{ 'x-forwarded-for': 'garbage' }, '10.0.0.1'],
    [{ 'x-forwarded-for': '10.2.2.2' }, '10.2.2.2'],
    [{ forwarded: 'for=1.1.1.1, for="[2001:db8::1]:80";proto=https' }, '2001:db8::1'],
    [{ forwarded: 'proto=https;for=198.51.100.1', 'x-forwarded-for': '198.51.100.2' }, '198.51.100.2'],
    [{}, '10.0.0.1'],
  ])('is the last address in %j that is no trusted proxy', (headers, expected) =>
    expect(read('::ffff:10.0.0.1', headers)).toBe(expected),
  );
});

describe('addressGroup', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:DB8:0:0:1:2:3:4', '2001:db8:0:0::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['', ''],
  ])('of %j is %j', (address, group) => expect(addressGroup(address)).toBe(group));
});

describe('bearerToken', () => {
  it('returns the token of a valid header and undefined otherwise', () => {
    expect(bearerToken('Bearer abc')).toBe('abc');
    for (const header of [undefined, '', 'Bearer ', 'Basic abc', 'Bearer a b', 'Bearer a\n'])
      expect([header, bearerToken(header)]).toEqual([header, undefined]);
  });
});
