import { describe, expect, it } from '@jest/globals';
import { isLoopbackHost, judgeOrigin } from '@antiphon/gateway-domain';

const allowed = (host: string | undefined, origin?: string, hasToken = false, forwarded = false): boolean =>
  judgeOrigin({ host, origin, forwarded, site: undefined }, hasToken).allowed;

describe('judgeOrigin', () => {
  it('serves programs on loopback without a token', () => {
    for (const host of ['127.0.0.1:8080', 'localhost:8080', '[::1]:8080', '127.0.0.2', 'LOCALHOST'])
      expect([host, allowed(host)]).toEqual([host, true]);
  });

  it('serves its own origin', () => expect(allowed('127.0.0.1:8080', 'http://127.0.0.1:8080')).toBe(true));

  it.each([
    'https://evil.example',
    'http://127.evil.example',
    'http://127.0.0.1:9999',
    'http://localhost:8080',
    'null',
    '',
    'http://127.0.0.1:8080.evil.example',
  ])('refuses the foreign origin %p, with and without a token', (origin) => {
    expect(allowed('127.0.0.1:8080', origin)).toBe(false);
    expect(allowed('127.0.0.1:8080', origin, true)).toBe(false);
  });

  it.each([
    'evil.example',
    '127.0.0.1.nip.io',
    '127.evil.example',
    '0.0.0.0',
    '2130706433',
    '127.1',
    'a@127.0.0.1',
    '',
  ])('refuses the host %p without a token (DNS rebinding)', (host) => expect(allowed(host)).toBe(false));

  it('refuses a missing host, and a proxy without a token', () => {
    expect(allowed(undefined)).toBe(false);
    expect(allowed('127.0.0.1', undefined, false, true)).toBe(false);
    expect(allowed('gateway.internal', undefined, true, true)).toBe(true);
  });
});

describe('judgeOrigin with a configured origin', () => {
  const foreign = new Set(['https://app.example']);
  const judge = (origin: string, hasToken = true, host = '127.0.0.1:7400') =>
    judgeOrigin({ host, origin, forwarded: false, site: 'cross-site' }, hasToken, foreign);

  it('serves its pages as foreign ones, and without a token on a loopback host only', () => {
    expect(judge('https://app.example')).toEqual({ allowed: true, isForeign: true });
    expect(judge('https://app.example', false)).toEqual({ allowed: true, isForeign: true });
    expect(judge('https://app.example', false, 'rebound.example').allowed).toBe(false);
  });

  it.each([
    'null',
    'http://app.example',
    'https://app.example:8443',
    'https://app.example:443',
    'https://APP.example',
    'https://app.example.',
    'https://app.example/',
    'https://app.example.evil.test',
    'https://evilapp.example',
    'https://sub.app.example',
    'https://app.example@evil.test',
    'https://user@app.example',
    'https://app.example, https://evil.test',
    ' https://app.example',
    '*',
    '',
  ])('refuses %p, which is not exactly this origin', (origin) => {
    expect([judge(origin).allowed, judge(origin, false).allowed]).toEqual([false, false]);
  });
});

describe('judgeOrigin of a request without an Origin', () => {
  const fromSite = (site: string, hasToken = false) =>
    judgeOrigin({ host: '127.0.0.1:7400', origin: undefined, forwarded: false, site }, hasToken).allowed;

  it('refuses one that another page caused, unless a token is needed anyway', () => {
    expect(['cross-site', 'same-site'].map((site) => [fromSite(site), fromSite(site, true)])).toEqual([
      [false, true],
      [false, true],
    ]);
  });

  it('serves one of its own pages and one of the address bar', () =>
    expect(['same-origin', 'none'].map((site) => fromSite(site))).toEqual([true, true]));
});

describe('isLoopbackHost', () => {
  it('accepts the long form of ::1 and no other address', () => {
    expect(isLoopbackHost('0:0:0:0:0:0:0:1')).toBe(true);
    for (const name of ['::2', '::', 'fe80::1', '1::1', '::ffff:127.0.0.1'])
      expect([name, isLoopbackHost(name)]).toEqual([name, false]);
  });
});
