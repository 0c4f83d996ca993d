import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { homeLayout } from '@antiphon/bootstrap/project';
import { isAlive, waitForExit } from '@antiphon/bootstrap/processes';
import { projectRoot } from '@antiphon/bootstrap/project';
import { backupDatabase, createPool, restoreDatabase, undoRestore } from '@antiphon/database';
import { silentLogger } from '@antiphon/observability';
import { until } from '@antiphon/testing';
import { down, withStoppedHome } from '../index.js';
import { readChildren } from '../process/child-process.js';
import { environment, start, identities, marked, useHomes } from './supervisor-world.spec.js';

describe('a start', () => {
  const newHome = useHomes();

  it('succeeds after a start that was killed before it was ready', async () => {
    const home = newHome();
    const seen = new AbortController();
    const killed = start(home, { signal: seen.signal }).catch((error: unknown) => error);
    // As soon as there is a first process: PostgreSQL's files are half made then.
    await until(() => existsSync(homeLayout(home).lockFile));
    await until(() => readChildren(homeLayout(home)).length > 0);
    const { pid } = JSON.parse(readFileSync(homeLayout(home).lockFile, 'utf8')) as { pid: number };
    process.kill(pid, 'SIGKILL');
    expect(await killed).toMatchObject({ message: expect.stringContaining('the start was ended (SIGKILL)') });
    expect((await start(home)).stack.state).toBe('ready');
    await down({ home });
    expect(marked(home)).toEqual([]);
  }, 60_000);

  it('chooses and reports another port where the usual one is taken', async () => {
    const home = newHome();
    const server = createServer().listen(0, '127.0.0.1');
    await until(() => server.listening);
    const { port } = server.address() as AddressInfo;
    writeFileSync(join(home, 'antiphon.toml'), `[gateway]\nport = ${port}\n`);
    const progress: string[] = [];
    const running = await start(home, { usualPorts: true, onProgress: (line) => void progress.push(line) });
    const actual = running.stack.services.gateway[0]!.port;
    expect(actual).not.toBe(port);
    expect(progress).toContain(`  port ${port} is taken; gateway-1 uses ${actual} instead`);
    await down({ home });
    server.close();
  }, 60_000);

  it.each([
    [
      'wait-on-start',
      /did not start: it waited for 20 s and was not ready\.\n[\s\S]*this one was told to wait/,
    ],
    ['not-ready', /is not ready after 20 s: the gateway at \S+ says: .*told not to be ready/],
  ])(
    'ends within 30 s with the cause where a service never is ready (%s)',
    async (file, message) => {
      const home = newHome();
      writeFileSync(join(home, file), '');
      const begun = performance.now();
      await expect(start(home)).rejects.toThrow(message);
      expect(performance.now() - begun).toBeLessThan(30_000);
      await until(() => !existsSync(homeLayout(home).lockFile));
      expect(marked(home)).toEqual([]);
    },
    60_000,
  );

  it('ends with the process that started it, unless it was detached', async () => {
    const home = newHome();
    const running = await start(home);
    const everything = identities(running.stack);
    running.detach();
    expect(everything.filter(isAlive)).toHaveLength(everything.length);
    await down({ home });
    expect(everything.filter(isAlive)).toEqual([]);
    expect(await waitForExit(everything[0]!, 1_000)).toBe(true);
  }, 60_000);

  it('refuses a database whose restore is unfinished, and continues after an undo', async () => {
    const home = newHome();
    await start(home);
    await down({ home });
    const stopped = { home, env: environment(), logger: silentLogger, onProgress: () => undefined };
    const folder = join(home, 'a backup');
    await withStoppedHome(stopped, async ({ databaseUrl: url }) => {
      const pool = createPool({ url, applicationName: 'spec' });
      await backupDatabase(pool, folder, () => Promise.resolve({})).finally(() => pool.end());
      const restoring = restoreDatabase({
        ...{ url, folder, migrationsDir: join(projectRoot, 'prisma/migrations') },
        finish: () => Promise.resolve(null),
        deleteDerived: () => Promise.reject(new Error('spec')),
      });
      await expect(restoring).rejects.toMatchObject({ code: 'BACKUP.NOT_FINISHED' });
    });
    await expect(start(home)).rejects.toThrow(/restore --resume.*RESTORE_UNFINISHED/s);
    await withStoppedHome({ ...stopped, duringRestore: true }, ({ databaseUrl }) => undoRestore(databaseUrl));
    expect((await start(home)).stack.state).toBe('ready');
    await down({ home });
  }, 120_000);

  it('stops by itself when its home is deleted', async () => {
    const home = newHome();
    const running = await start(home);
    const everything = identities(running.stack);
    rmSync(home, { recursive: true, force: true });
    expect(await running.ended).toBeNull();
    expect(everything.filter(isAlive)).toEqual([]);
  }, 60_000);
});
