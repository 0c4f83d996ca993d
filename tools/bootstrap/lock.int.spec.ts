import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { acquireLock, lockHolder, tryLock } from './lock.mjs';
import { identify, isAlive } from './processes.mjs';

const LOCK_MODULE = join(import.meta.dirname, 'lock.mjs');

/** Runs a script with the lock's functions in a process of its own. */
const inProcess = (script: string, ...args: string[]) => {
  const source = `import { acquireLock, tryLock } from ${JSON.stringify(LOCK_MODULE)};\n${script}`;
  return spawn(process.execPath, ['--input-type=module', '-e', source, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: '' },
  });
};

describe('a lock', () => {
  let folder: string;
  let path: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'antiphon lock '));
    path = join(folder, 'a.lock');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('has one holder at a time and names it', async () => {
    const first = await tryLock(path);
    expect(first.acquired).toBe(true);
    const second = await tryLock(path);
    expect(second).toMatchObject({ acquired: false, holder: { pid: process.pid } });
    if (first.acquired) first.lock.release();
    expect(lockHolder(path)).toBeNull();
    expect((await tryLock(path)).acquired).toBe(true);
  });

  it('passes to a waiting process, which is notified once', async () => {
    const held = await acquireLock(path);
    const told: number[] = [];
    const toldOnce = Promise.withResolvers<void>();
    const onWait = ({ pid }: { pid: number }): void => {
      told.push(pid);
      toldOnce.resolve();
    };
    const waiting = acquireLock(path, { onWait });
    await toldOnce.promise;
    held.release();
    (await waiting).release();
    expect(told).toEqual([process.pid]);
  });

  // @shows U61
  it('replaces a killed holder after ending its children', async () => {
    const child = inProcess(
      `import { spawn } from 'node:child_process';
       const lock = await acquireLock(process.argv[1]);
       const sleeper = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' });
       await new Promise((resolve) => sleeper.once('spawn', resolve));
       lock.adopt(sleeper.pid);
       console.log(sleeper.pid);
       setInterval(() => {}, 1000);`,
      path,
    );
    const sleeper = identify(Number(String(await once(child.stdout, 'data')).trim()));
    expect(sleeper).not.toBeNull();
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(lockHolder(path)).toBeNull();
    const lock = await acquireLock(path);
    expect(isAlive(sleeper!)).toBe(false);
    lock.release();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('has one holder when many processes replace a dead one at once', async () => {
    const counter = join(folder, 'counter');
    // Each holder reads, pauses and writes: two at once would lose a count. Every second one dies
    // with the lock.
    const script = `import { readFileSync, writeFileSync, appendFileSync } from 'node:fs';
      import { setTimeout as sleep } from 'node:timers/promises';
      const [path, counter, die] = process.argv.slice(1);
      const lock = await acquireLock(path);
      let count = 0;
      try { count = Number(readFileSync(counter, 'utf8')); } catch {}
      await sleep(5);
      writeFileSync(counter, String(count + 1));
      if (die === 'yes') process.kill(process.pid, 'SIGKILL');
      lock.release();`;
    const children = Array.from({ length: 10 }, (_, i) =>
      inProcess(script, path, counter, i % 2 ? 'yes' : 'no'),
    );
    await Promise.all(children.map((child) => once(child, 'exit')));
    expect(readFileSync(counter, 'utf8')).toBe('10');
  }, 30_000);
});
