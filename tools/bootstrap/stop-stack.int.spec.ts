import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { writeJsonAtomic } from './files.mjs';
import { homeLayout } from './project.mjs';
import { identify, isAlive, waitForExit } from './processes.mjs';
import type { ProcessIdentity } from './types.js';
import { stopStack } from './stop-stack.mjs';

const start = async (script: string, ...args: string[]): Promise<ProcessIdentity> => {
  const child = spawn('sh', ['-c', script, ...args], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
  await once(child.stdout, 'data');
  return identify(child.pid as number)!;
};

describe('stopStack after a killed supervisor', () => {
  let home: string;
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'antiphon-stop-'));
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));

  const record = (
    children: (ProcessIdentity & { name: string; stopSignal?: string; graceMs?: number })[],
  ): void =>
    writeJsonAtomic(
      homeLayout(home).childrenFile,
      children.map((child) => ({ stopSignal: 'SIGTERM', graceMs: 300, ...child })),
    );

  it('ends every recorded process in reverse order, by force after its grace', async () => {
    const engine = await start('trap "" TERM; echo up; while :; do sleep 0.05; done');
    const service = await start('echo up; exec sleep 1000');
    record([
      { ...engine, name: 'engine' },
      { ...service, name: 'service' },
    ]);
    const told: string[] = [];
    expect(await stopStack(home, (line) => void told.push(line))).toEqual({ wasRunning: true });
    expect([engine, service].map(isAlive)).toEqual([false, false]);
    expect(told.map((line) => line.split(' ')[1])).toEqual(['service', 'engine']);
    expect(existsSync(homeLayout(home).childrenFile)).toBe(false);
  });

  it('ends an unrecorded process, but none of another home', async () => {
    const mark = (of: string): string =>
      `export ANTIPHON_SUPERVISED_HOME='${of}'; sh -c 'echo up; exec sleep 1000'; true`;
    const forgotten = await start(`exec sh -c "$0"`, mark(home));
    const other = await start(`exec sh -c "$0"`, mark(`${home}-2`));
    // A shell's export reaches its children's environment, not its own: the sleeping child bears
    // the mark, and is there once it has said so.
    record([]);
    const { wasRunning } = await stopStack(home);
    expect(wasRunning).toBe(true);
    await waitForExit(forgotten, 5_000);
    expect([forgotten, other].map(isAlive)).toEqual([false, true]);
    process.kill(-other.pid, 'SIGKILL');
  });

  // @shows U61
  it('does not signal a process with a reused pid', async () => {
    const stranger = await start('echo up; exec sleep 1000');
    record([{ ...stranger, start: 'another life', name: 'agent-1' }]);
    expect(await stopStack(home)).toEqual({ wasRunning: false });
    expect(isAlive(stranger)).toBe(true);
    process.kill(stranger.pid, 'SIGKILL');
  });

  it('succeeds where no stack runs, also when repeated', async () => {
    expect(await stopStack(home)).toEqual({ wasRunning: false });
    expect(await stopStack(join(home, 'not-there'))).toEqual({ wasRunning: false });
    expect(existsSync(join(home, 'not-there'))).toBe(false);
  });
});
