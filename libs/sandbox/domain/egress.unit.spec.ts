import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isPublicAddress, parseHttpRequest, textCharset, vetUrl } from '@antiphon/sandbox-domain';

describe('isPublicAddress', () => {
  it.each([
    '93.184.216.34',
    '1.1.1.1',
    '172.15.0.1',
    '172.32.0.1',
    '100.63.0.1',
    '100.128.0.1',
    '2606:2800:220:1::248',
    '2a00:1450:4001:82a::200e',
  ])('accepts %s', (address) => expect(isPublicAddress(address)).toBe(true));

  it.each([
    ['0.0.0.0', '0.1.2.3', '10.0.0.1', '100.64.0.1', '100.100.100.200', '127.0.0.1', '127.255.255.254'],
    ['168.63.129.16', '169.254.169.254', '172.16.0.1', '172.31.255.255', '192.0.0.170', '192.168.1.1'],
    ['192.0.2.1', '192.88.99.1', '198.18.0.1', '198.19.255.255', '198.51.100.7', '203.0.113.1'],
    ['224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255'],
    [
      '::',
      '::1',
      '::ffff:127.0.0.1',
      '::ffff:7f00:1',
      '::ffff:93.184.216.34',
      '::127.0.0.1',
      '64:ff9b::7f00:1',
    ],
    [
      'fe80::1',
      'fe80::1%lo',
      'fc00::1',
      'fd00:ec2::254',
      'fec0::1',
      'ff02::1',
      '2001:db8::1',
      '2001::1',
      '2001:10::1',
      '2002:7f00:1::',
      '3fff::1',
      '100::1',
    ],
    [
      '',
      'localhost',
      '1.2.3',
      '1.2.3.4.5',
      '256.1.1.1',
      '0x7f.1',
      '2130706433',
      '1:2:3',
      ':::',
      '1::2::3',
      '2001:db8::g',
      '::1.2.3',
    ],
  ])('refuses %s', (...addresses) =>
    expect(addresses.filter((address) => isPublicAddress(address))).toEqual([]),
  );

  it('refuses an IPv4 address that is embedded in IPv6', () =>
    fc.assert(
      fc.property(
        fc.ipV4(),
        fc.constantFrom('::ffff:', '::', '64:ff9b::', '2002:', 'fe80::'),
        (address, prefix) => expect(isPublicAddress(`${prefix}${address}`)).toBe(false),
      ),
    ));

  it('returns a boolean for any text', () =>
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.ipV6()), (text) =>
        expect([true, false]).toContain(isPublicAddress(text)),
      ),
    ));
});

describe('vetUrl', () => {
  const hosts = new Set(['api.example.com', 'xn--bcher-kva.example']);

  it.each([
    ['https://api.example.com', '/', 443, true],
    ['http://API.example.com:80/a b?q=1#part', '/a%20b?q=1', 80, false],
    ['https://bücher.example/x', '/x', 443, true],
  ])('accepts %s', (text, target, port, secure) =>
    expect(vetUrl(text, hosts)).toMatchObject({ ok: true, target, port, secure }),
  );

  it.each([
    'http://2130706433/',
    'http://0x7f.1/',
    'http://0177.0.0.1/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::]/',
    'http://0/',
    'http://127.0.0.1.nip.io/',
    'http://localhost./',
    'http://[fe80::1%25lo]/',
    'http://ⓛocalhost/',
    'http://100.64.0.1/',
    'http://metadata.google.internal/',
    'gopher://127.0.0.1:6379/',
    'file:///etc/passwd',
    'http://user@127.0.0.1@example.com/',
    'http://unix:/var/run/docker.sock:/containers/json',
    'https://api.example.com./',
    'https://evil.api.example.com/',
    'https://api.example.com.evil.net/',
    'https://user:pass@api.example.com/',
    'https://evil.net#@api.example.com/',
    'https://evil.net\\@api.example.com/',
    'https://api.example.com:8443/',
    'http://api.example.com:443/',
    'data:text/plain,x',
    '//api.example.com/',
    'api.example.com',
    '',
    `https://api.example.com/${'x'.repeat(2_048)}`,
  ])('refuses %s with a reason', (text) =>
    expect(vetUrl(text, hosts)).toEqual({ ok: false, reason: expect.stringMatching(/\S/) }),
  );

  it('checks a redirect again and refuses one from https to http', () => {
    const base = vetUrl('https://api.example.com/a/b', hosts);
    if (!base.ok) throw new Error(base.reason);
    expect(vetUrl('../c', hosts, base)).toMatchObject({ ok: true, target: '/c' });
    expect(vetUrl('http://api.example.com/', hosts, base)).toMatchObject({ ok: false });
    expect(vetUrl('//169.254.169.254/', hosts, base)).toMatchObject({ ok: false });
  });

  it.each([
    ['https://api.example.com:8443/x', 'api.example.com:8443', true],
    ['https://api.example.com/x', 'api.example.com:443', true],
    ['http://api.example.com/x', 'api.example.com:443', false],
    ['https://api.example.com/x', 'api.example.com:8443', false],
    ['https://api.example.com/v1', 'api.example.com/v1', true],
    ['https://api.example.com/v1/a%20b?to=/v2', 'api.example.com/v1', true],
    ['https://api.example.com/v10', 'api.example.com/v1', false],
    ['https://api.example.com/v1', 'api.example.com/v1/', false],
    ['https://api.example.com/V1/', 'api.example.com/v1', false],
    ['https://api.example.com/v1/../v2', 'api.example.com/v1', false],
    ['https://api.example.com/v1/%2e%2E/v2', 'api.example.com/v1', false],
    ['https://api.example.com/v1/..%2fv2', 'api.example.com/v1', false],
    ['https://api.example.com/v1/%252e%252e/v2', 'api.example.com/v1', false],
    ['https://api.example.com/v1/..;/v2', 'api.example.com/v1', false],
    ['https://api.example.com/v1\\..\\v2', 'api.example.com/v1', false],
    ['https://other.example.com/v1', 'api.example.com/v1', false],
  ])('vets %s by the grant %s', (url, grant, ok) => expect(vetUrl(url, new Set([grant])).ok).toBe(ok));

  it('checks the path of a redirect again', () => {
    const granted = new Set(['api.example.com/v1']);
    const base = vetUrl('https://api.example.com/v1/start', granted);
    if (!base.ok) throw new Error(base.reason);
    expect(vetUrl('../v1/end', granted, base)).toMatchObject({ ok: true, target: '/v1/end' });
    expect(vetUrl('../admin', granted, base)).toMatchObject({ ok: false });
  });

  it('keeps a port that is not the usual one in the header host', () =>
    expect(vetUrl('https://api.example.com:8443/', new Set(['api.example.com:8443']))).toMatchObject({
      authority: 'api.example.com:8443',
      host: 'api.example.com',
    }));

  it('names the capability to add when no host is granted', () =>
    expect(vetUrl('https://api.example.com/', new Set())).toMatchObject({
      reason: 'no host is granted to this plug-in; grant one with capabilities = ["http:HOST"]',
    }));
});

describe('parseHttpRequest', () => {
  it('keeps the accept header', () =>
    expect(parseHttpRequest('{"url":"u","method":"GET","headers":{"Accept":"text/plain"}}')).toEqual({
      ok: true,
      method: 'GET',
      url: 'u',
      headers: { accept: 'text/plain' },
    }));

  it.each([
    ['', 'not {"url"'],
    ['[]', 'not {"url"'],
    ['{"url":5}', 'not {"url"'],
    ['{"url":"u","method":"POST"}', 'only GET'],
    ['{"url":"u","headers":{"Authorization":"x"}}', 'authorization'],
    ['{"url":"u","headers":{"Cookie":"x"}}', 'cookie'],
    ['{"url":"u","headers":{"Host":"x"}}', 'host'],
    ['{"url":"u","headers":{"accept":"a\\r\\nx: y"}}', 'accept'],
    ['{"url":"u","headers":[]}', 'not an object'],
  ])('refuses %s', (text, reason) =>
    expect(parseHttpRequest(text)).toEqual({ ok: false, reason: expect.stringContaining(reason) }),
  );

  it.each([
    ['text/html; charset=ISO-8859-1', 'iso-8859-1'],
    ['application/json', 'utf-8'],
    ['application/problem+json;charset="utf-8"', 'utf-8'],
    ['application/octet-stream', null],
    ['image/svg+xml', null],
    ['', null],
    [undefined, null],
  ])('reads a page of type %s as charset %s', (type, charset) => expect(textCharset(type)).toBe(charset));
});
