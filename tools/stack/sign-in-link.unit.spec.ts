import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { StackJson } from './stack-json.js';
import { createSignInLink } from './sign-in-link.js';

let server: Server;
let needsKey: boolean;
const folder = mkdtempSync(join(tmpdir(), 'antiphon-link-'));
const adminKeyFile = join(folder, 'admin.key');
writeFileSync(adminKeyFile, 'ak_key\n');

beforeEach(async () => {
  server = createServer(({ url, method, headers }, response) => {
    if (url === '/api/v1/me') response.writeHead(needsKey ? 401 : 200).end('{}');
    else if (method === 'POST' && headers.authorization === 'Bearer ak_key')
      response.writeHead(201).end('{"path":"/#sign-in=code"}');
    else response.writeHead(403).end('{}');
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
});
afterEach(async () => {
  await new Promise((done) => server.close(done));
});

const stackAt = (gateway: string | null) =>
  ({ urls: { gateway, gateways: [] }, adminKeyFile }) as unknown as StackJson;
const gatewayUrl = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

describe('the sign-in link of a start', () => {
  it('is created with the admin key where the gateway needs one', async () => {
    needsKey = true;
    expect(await createSignInLink(stackAt(gatewayUrl()))).toBe(`${gatewayUrl()}/#sign-in=code`);
  });

  it('is absent where no sign-in is needed, and without a gateway', async () => {
    needsKey = false;
    expect(await createSignInLink(stackAt(gatewayUrl()))).toBeNull();
    expect(await createSignInLink(stackAt(null))).toBeNull();
    expect(await createSignInLink(stackAt('http://127.0.0.1:1'))).toBeNull();
    rmSync(folder, { recursive: true });
  });
});
