import { describe, expect, it } from '@jest/globals';
import { chooseProxy, parseProxy, secretsOfProxy } from './provider-proxy.js';

const HTTPS = { HTTPS_PROXY: 'http://proxy.corp:3128' };
const choose = (url: string, env: Record<string, string>, proxy?: string) =>
  chooseProxy({ name: 'it', ...(proxy === undefined ? {} : { proxy }) }, new URL(url), env);

describe('the proxy of a provider', () => {
  it('is that of HTTPS_PROXY for https, and of HTTP_PROXY for http', () => {
    expect(choose('https://api.example/v1', HTTPS)).toMatchObject({ kind: 'proxy', from: 'HTTPS_PROXY' });
    expect(choose('http://api.example/v1', HTTPS)).toMatchObject({ kind: 'direct' });
    const http = { HTTP_PROXY: 'proxy.corp:3128' };
    expect(choose('http://api.example/v1', http)).toMatchObject({ kind: 'proxy', from: 'HTTP_PROXY' });
    expect(choose('https://api.example/v1', http)).toMatchObject({ kind: 'direct' });
  });

  it('is that of the variable in lower case if both are set, and none of a blank variable', () => {
    const both = { ...HTTPS, https_proxy: 'http://lower.corp:1' };
    expect(choose('https://api.example', both)).toMatchObject({ from: 'https_proxy' });
    expect(choose('https://api.example', { ...HTTPS, https_proxy: ' ' })).toMatchObject({
      from: 'HTTPS_PROXY',
    });
  });

  it('is its setting, under any environment', () => {
    const env = { ...HTTPS, NO_PROXY: '*' };
    expect(choose('https://api.example', env, 'http://own.corp:8080')).toMatchObject({
      kind: 'proxy',
      from: 'proxy of provider it',
    });
    expect(choose('https://api.example', HTTPS, 'none')).toMatchObject({ kind: 'direct' });
  });

  it.each([
    'http://127.0.0.1:8080/v1',
    'http://127.9.9.9/v1',
    'http://localhost:11434',
    'https://LOCALHOST',
    'http://[::1]:8080',
    'http://0.0.0.0:1',
    'http://app.localhost',
  ])('is none for the loopback address %s', (url) => {
    const all = { ...HTTPS, HTTP_PROXY: 'http://proxy.corp:3128' };
    expect(choose(url, all)).toEqual({ kind: 'direct', reason: 'loopback' });
    expect(choose(url, all, 'http://own.corp:1')).toEqual({ kind: 'direct', reason: 'loopback' });
  });

  it.each([
    ['*', true],
    ['api.example', true],
    ['EXAMPLE', true],
    ['.example', true],
    ['*.example', true],
    ['other, .example ,', true],
    ['other api.example', true],
    ['api.example:443', true],
    ['api.example:8443', false],
    ['pi.example', false],
    ['v1.api.example', false],
    ['', false],
  ])('is none where NO_PROXY = %j names its host (%s)', (rules, isDirect) =>
    expect(choose('https://api.example/v1', { ...HTTPS, no_proxy: rules }).kind).toBe(
      isDirect ? 'direct' : 'proxy',
    ),
  );

  it.each([
    ['10.0.0.0/8', 'https://10.1.2.3', true],
    ['10.0.0.0/8', 'https://11.1.2.3', false],
    ['10.1.2.3', 'https://10.1.2.3:8443', true],
    ['fd00::/8', 'https://[fd00::1]', true],
    ['[fd00::1]', 'https://[fd00::1]', true],
    ['10.0.0.0/8', 'https://ten.example', false],
  ])('is none within the network %s (%s: %s)', (rules, url, isDirect) =>
    expect(choose(url, { ...HTTPS, NO_PROXY: rules }).kind).toBe(isDirect ? 'direct' : 'proxy'),
  );

  it.each(['socks5://proxy:1080', 'not a url', 'http://proxy:1/path', 'http://proxy:1?x=1', 'http://'])(
    'is invalid as %s, which is not shown',
    (value) =>
      expect(choose('https://api.example', {}, value)).toEqual({
        kind: 'invalid',
        from: 'proxy of provider it',
      }),
  );

  it('has its user and password among the secrets, as they are and as they are sent', () => {
    const url = parseProxy('http://me:p%40ss%20word@proxy:3128') as URL;
    expect(secretsOfProxy(url)).toEqual([
      'p%40ss%20word',
      'p@ss word',
      Buffer.from('me:p@ss word').toString('base64'),
    ]);
    expect(secretsOfProxy(parseProxy('token-canary@proxy:3128') as URL)).toContain('token-canary');
  });
});
