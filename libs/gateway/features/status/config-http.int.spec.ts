import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GATEWAY_ROUTES } from '@antiphon/contracts/reference';
import type { RunningService } from '@antiphon/service-host';
import { createGatewayWorld, type GatewayWorld } from '../testing/gateway-world.js';

jest.setTimeout(60_000);

const MARKER = 'MARKER0of0a0secret';
const KEY = `ak_bootstrapkeytest_${MARKER.padEnd(43, 'b')}`;
const FILE = `
[gateway]
token = "${MARKER.padEnd(40, '!')}"
[[providers]]
name = "own"
kind = "openai"
base_url = "http://127.0.0.1/${MARKER}/v1"
api_key_env = "${MARKER}"
[[agents]]
id = "main"
system_prompt = "${MARKER}"
[[agents]]
id = "foreign"
workspace = "acme"
`;
const MASTER = Buffer.from(MARKER.padEnd(32, 'm')).toString('base64');

let world: GatewayWorld;
let gateway: RunningService;
const folder = mkdtempSync(join(tmpdir(), 'antiphon-config-http-'));

beforeAll(async () => {
  world = await createGatewayWorld();
  const config = join(folder, 'antiphon.toml');
  writeFileSync(config, FILE, { mode: 0o600 });
  const url = new URL(world.nats.url);
  url.username = url.password = MARKER;
  gateway = await world.start({
    ANTIPHON_CONFIG: config,
    ANTIPHON_BOOTSTRAP_KEY: KEY,
    ANTIPHON_GATEWAY_TOKEN: MARKER.padEnd(36, '!'),
    ANTIPHON_SERVICE_NATS_URL: url.href,
    ANTIPHON_MASTER_KEY: MASTER,
    ANTIPHON_LOG_SIGNING_KEY: MARKER,
    ANTIPHON_ARCHIVER_DATABASE_URL: `postgres://archiver:${MARKER}@127.0.0.1/db`,
    [MARKER]: MARKER,
    ...Object.fromEntries(['ANTHROPIC', 'OPENAI', 'OPENROUTER'].map((name) => [`${name}_API_KEY`, MARKER])),
  });
});
afterAll(async () => {
  await world?.close();
  rmSync(folder, { recursive: true });
});

const call = (path: string, token: string, init: RequestInit = {}) =>
  fetch(`http://127.0.0.1:${gateway.port}/api/v1${path}`, {
    ...init,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
  });

describe('GET /api/v1/config', () => {
  it('has no secret of the file, the environment or the URLs, in its body and headers', async () => {
    const response = await call('/config', KEY);
    expect(response.status).toBe(200);
    const text = await response.text();
    const answer = text + JSON.stringify([...response.headers]);
    const password = new URL(world.database.urlFor('gateway')).password;
    for (const secret of [MARKER, MASTER, ...(password === '' ? [] : [password])])
      expect(answer).not.toContain(secret);
    const { settings } = GATEWAY_ROUTES.readConfig.reply.schema.parse(JSON.parse(text));
    expect(settings.find(({ key }) => key === 'gateway.token')).toEqual({
      ...{ key: 'gateway.token', value: 'set', origin: 'environment', isSecret: true },
    });
    const secrets = settings.filter(({ isSecret }) => isSecret);
    expect(secrets.map(({ value }) => value).toSorted()).toEqual([
      'not set',
      ...Array<string>(4).fill('set'),
    ]);
    expect(secrets.find(({ value }) => value === 'not set')?.key).toMatch(/\.proxy$/);
  });

  it('has the agents of the workspace only', async () => {
    const text = await (await call('/config', KEY)).text();
    expect(text).toContain('agents[main].model');
    expect(text).not.toContain('foreign');
  });

  it.each([
    ['viewer', 403],
    ['member', 403],
    ['operator', 200],
  ])('answers a %s with %i', async (role, status) => {
    const body = JSON.stringify({ name: role, role });
    const created = await call('/keys', KEY, { method: 'POST', body });
    const { token } = (await created.json()) as { token: string };
    expect((await call('/config', token)).status).toBe(status);
  });
});
