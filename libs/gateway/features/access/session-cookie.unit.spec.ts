import { describe, expect, it } from '@jest/globals';
import { SessionCookie } from './session-cookie.js';

const cookie = new SessionCookie('/srv/antiphon');
const nameOf = (headers: Record<string, string>): string =>
  cookie.render(headers, 'v', 1).split('=', 1)[0] ?? '';
const plain = nameOf({});
const prefixed = nameOf({ origin: 'https://gateway.example' });

describe('the cookie of a session', () => {
  it('has a prefix on https, which no other port of the host can set', () => {
    expect(prefixed).toBe(`__Host-${plain}`);
    expect(cookie.render({ origin: 'https://gateway.example' }, 'v', 1)).toMatch(/; Secure$/);
    expect(cookie.render({}, 'v', 1)).not.toContain('Secure');
  });

  // @shows review2-13-the-cookie-on-https
  it.each([
    { origin: 'https://gateway.example' },
    { referer: 'https://gateway.example/agents' },
    { 'x-forwarded-proto': 'https' },
    { 'x-forwarded-proto': 'HTTPS, http' },
    { forwarded: 'for=192.0.2.1; proto="https"; by=203.0.113.1' },
  ])('is not read by its plain name behind %j', (headers) => {
    expect(cookie.read({ ...headers, cookie: `${plain}=fixed` })).toBeUndefined();
    expect(cookie.read({ ...headers, cookie: `${plain}=fixed; ${prefixed}=own` })).toBe('own');
    expect(cookie.read({ ...headers, cookie: `${prefixed}=own` })).toBe('own');
  });

  it('is read by its plain name on http, where a prefixed one comes first', () => {
    expect(cookie.read({ cookie: `${plain}=own` })).toBe('own');
    expect(cookie.read({ cookie: `${plain}=fixed; ${prefixed}=own` })).toBe('own');
    expect(cookie.read({ 'x-forwarded-proto': 'http', cookie: `${plain}=own` })).toBe('own');
  });
});
