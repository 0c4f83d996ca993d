import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';

const CLI = fileURLToPath(new URL('../../bin/antiphon.mjs', import.meta.url));

it('status names the processes of stack.json that have ended', async () => {
  const home = mkdtempSync(join(tmpdir(), 'antiphon-status-'));
  const child = spawn(process.execPath, ['-e', ''], { stdio: 'ignore' });
  const { pid } = child;
  await once(child, 'exit');
  const entry = { id: 'agent-1', pid, port: 1, state: 'ready', restarts: 0, startedAt: null };
  const engine = { pid: null, port: 1, address: '', version: null, external: true, state: 'ready' };
  const url = 'http://127.0.0.1:1';
  const stack = {
    ...{ state: 'ready', home, supervisor: { pid: process.pid, startedAt: '' } },
    services: { agent: [entry], gateway: [{ ...entry, id: 'gateway-1', pid: process.pid }] },
    engines: { postgres: engine, nats: engine, temporal: engine },
    urls: { gateway: url, gateways: [url] },
    adminKeyFile: join(home, 'admin.key'),
  };
  writeFileSync(join(home, 'stack.json'), JSON.stringify(stack));
  const env = { PATH: process.env['PATH'], HOME: home, ANTIPHON_HOME: home };
  const { status, stderr } = spawnSync(process.execPath, [CLI, 'status'], {
    cwd: home,
    env,
    encoding: 'utf8',
  });
  rmSync(home, { recursive: true });
  expect(status).toBe(3);
  expect(stderr).toContain(`Ended processes of this home: agent-1 (pid ${pid})`);
});
