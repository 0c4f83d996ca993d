import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@antiphon/observability';
import { connectClient } from '@antiphon/testing/client';
import { createGatewayWorld, type GatewayWorld } from '../testing/gateway-world.js';

jest.setTimeout(60_000);

const PAGE =
  '<!doctype html><meta property="csp-nonce" nonce="__CSP_NONCE__"><script type="module" src="/assets/main-A1b2C3d4.js"></script>';
const SCRIPT = `console.log("${'dashboard '.repeat(200)}");`;
const lines: Record<string, unknown>[] = [];
let world: GatewayWorld;
const root = mkdtempSync(join(tmpdir(), 'antiphon-dashboard-'));
const folder = join(root, 'dist');
let open: number;
let guarded: number;

const start = async (env: Record<string, string>): Promise<number> => {
  const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>);
  const logger = createLogger({ service: 'gateway', sink: { write } });
  return (await world.start({ ANTIPHON_DASHBOARD_FOLDER: folder, ...env }, logger)).port;
};

beforeAll(async () => {
  mkdirSync(join(folder, 'assets'), { recursive: true });
  writeFileSync(join(folder, 'index.html'), PAGE);
  writeFileSync(join(folder, 'assets', 'main-A1b2C3d4.js'), SCRIPT);
  writeFileSync(join(folder, 'icon.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>');
  writeFileSync(join(root, 'secret.txt'), 'outside');
  symlinkSync(join(root, 'secret.txt'), join(folder, 'link.txt'));
  world = await createGatewayWorld();
  open = await start({});
  guarded = await start({ ANTIPHON_GATEWAY_TOKEN: 'the-right-token-has-over-32-characters' });
});
afterAll(async () => {
  await world?.close();
  rmSync(root, { recursive: true });
});

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly text: string;
}

/** Sends a path and headers as they are, which `fetch` would normalise. */
const send = (port: number, path: string, headers: Record<string, string> = {}, method = 'GET', body = '') =>
  new Promise<Answer>((resolve, reject) => {
    const all = { host: `127.0.0.1:${port}`, accept: 'text/html', ...headers };
    const sent = request({ host: '127.0.0.1', port, path, method, headers: all }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () =>
        resolve({
          text,
          status: response.statusCode ?? 0,
          headers: response.headers as Record<string, string>,
        }),
      );
    });
    sent.on('error', reject);
    sent.end(body);
  });

describe('the page of the dashboard', () => {
  it('is served without a credential, with a policy and a nonce of its own', async () => {
    const [one, other] = [await send(guarded, '/'), await send(open, '/')];
    for (const { status, text, headers } of [one, other]) {
      const nonce = /nonce="([^"]{22,})"/.exec(text)?.[1] ?? '';
      expect([status, text]).toEqual([200, PAGE.replace('__CSP_NONCE__', nonce)]);
      const policy = headers['content-security-policy'];
      expect(policy).toContain(`style-src 'self' 'nonce-${nonce}'`);
      for (const rule of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"])
        expect(policy?.split('; ')).toContain(rule);
      expect(policy).toContain("require-trusted-types-for 'script'");
      expect(policy).not.toMatch(/unsafe|https:|\*/);
      expect(headers).toMatchObject({
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'x-dns-prefetch-control': 'off',
      });
    }
    expect(one.text).not.toBe(other.text);
  });

  it('is the answer for links to its views, and never for programs or paths with two readings', async () => {
    for (const path of ['/sessions/1?at=5', '/agents/research%20lead', '/events?x=//y'])
      expect([path, (await send(open, path)).status]).toEqual([path, 200]);
    const refused = [
      ...['/api/v1/nothing', '/API/v1/agents', '/api', '//', '//api/v1/agents', '/x%2Fapi', '/x/..;/api'],
      ...['/x%00', '/..%2f..%2fsecret.txt', '/../secret.txt', '/assets/none.js', '/metrics/x'],
    ];
    for (const path of refused) {
      const { text, status } = await send(open, path);
      expect([path, status, text.includes('<script')]).toEqual([path, expect.any(Number), false]);
      expect([400, 404]).toContain(status);
    }
    expect((await send(open, '/sessions', { accept: 'application/json' })).status).toBe(404);
    expect((await send(guarded, '/api/v1/agents')).status).toBe(401);
    expect((await send(open, '/sessions', {}, 'POST')).status).toBe(404);
  });

  it('is refused to a foreign Host without a token, on every path', async () => {
    for (const path of ['/', '/sessions', '/assets/main-A1b2C3d4.js', '/api/v1/agents', '/docs', '/ws'])
      expect([path, (await send(open, path, { host: 'evil.test' })).status]).toEqual([path, 403]);
  });

  it('opens by a link of another page, whose scripts cannot read the API', async () => {
    expect((await send(open, '/', { 'sec-fetch-site': 'cross-site' })).status).toBe(200);
    expect((await send(open, '/api/v1/health', { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
  });
});

describe('a file of the dashboard', () => {
  it('is compressed and cached for ever if its name has a hash', async () => {
    const path = '/assets/main-A1b2C3d4.js';
    const plain = await send(guarded, path);
    expect(plain.text).toBe(SCRIPT);
    expect(plain.headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
    });
    for (const encoding of ['br', 'gzip']) {
      const packed = await send(guarded, path, { 'accept-encoding': encoding });
      expect(packed.headers['content-encoding']).toBe(encoding);
      expect(Number(packed.headers['content-length'])).toBeLessThan(SCRIPT.length / 5);
    }
    const again = await send(guarded, path, { 'if-none-match': plain.headers['etag'] ?? '' });
    expect([again.status, again.text]).toEqual([304, '']);
    expect((await send(guarded, '/icon.svg')).headers['cache-control']).toBe('no-cache');
    expect((await send(guarded, path, {}, 'HEAD')).status).toBe(200);
  });

  it('is read again after a new build, and links out of the folder are not served', async () => {
    expect((await send(open, '/link.txt', { accept: '*/*' })).status).toBe(404);
    writeFileSync(join(folder, 'index.html'), '<!doctype html><p>a newer build</p>');
    expect((await send(open, '/')).text).toContain('a newer build');
    renameSync(join(folder, 'index.html'), join(folder, 'index.old'));
    const { status, text } = await send(open, '/');
    expect([status, text]).toEqual([503, expect.stringContaining('npm run build')]);
    renameSync(join(folder, 'index.old'), join(folder, 'index.html'));
  });
});

describe('the dashboard without a token', () => {
  it('reads, writes and opens a socket from its own origin, and from no other', async () => {
    const own = { origin: `http://127.0.0.1:${open}`, 'sec-fetch-site': 'same-origin' };
    const json = { 'content-type': 'application/json', accept: '*/*' };
    expect((await send(open, '/openapi.json', { ...own, ...json })).status).toBe(200);
    const post = (headers: Record<string, string>) =>
      send(open, '/api/v1/workspaces', { ...json, ...headers }, 'POST', '{"id":"UPPER"}');
    expect((await post(own)).status).toBe(400);
    for (const origin of [
      `http://127.0.0.1:${open + 1}`,
      `http://localhost:${open}`,
      'null',
      'https://evil.test',
    ])
      expect([origin, (await post({ ...own, origin })).status]).toEqual([origin, 403]);
    const client = await connectClient(`ws://127.0.0.1:${open}/ws`, { origin: own.origin });
    expect(await client.call('ping')).toBe('pong');
    await client.close();
    await expect(
      connectClient(`ws://127.0.0.1:${open}/ws`, { origin: `http://127.0.0.1:${open + 1}` }),
    ).rejects.toThrow('403');
  });
});

describe('a report about the policy', () => {
  it('is logged and counted, up to a limit, and a large one is refused', async () => {
    const report = (body: unknown, type = 'application/csp-report') =>
      send(guarded, '/csp-report', { 'content-type': type }, 'POST', JSON.stringify(body));
    const older = {
      'csp-report': { 'effective-directive': 'img-src', 'blocked-uri': 'https://evil.test/a' },
    };
    expect((await report(older)).status).toBe(204);
    const newer = [{ type: 'csp-violation', body: { effectiveDirective: 'script-src', blockedURL: 'eval' } }];
    expect((await report(newer, 'application/reports+json')).status).toBe(204);
    for (let i = 0; i < 40; i++) await report(older);
    const logged = lines.filter(({ message }) => message === 'dashboard policy violated');
    expect(logged).toHaveLength(30);
    expect(logged.slice(0, 2)).toMatchObject([
      { directive: 'img-src', blocked: 'https://evil.test/a' },
      { directive: 'script-src', blocked: 'eval' },
    ]);
    const headers = { authorization: 'Bearer the-right-token-has-over-32-characters' };
    const { text } = await send(guarded, '/metrics', headers);
    expect(text).toMatch(/^antiphon_dashboard_policy_violations_total\S* 42\b/m);
    expect((await report({ 'csp-report': { x: 'x'.repeat(20_000) } })).status).toBe(413);
    expect((await report('no report')).status).toBe(204);
  });
});
