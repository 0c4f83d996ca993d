import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { homeLayout } from '@antiphon/bootstrap/project';
import { identify } from '@antiphon/bootstrap/processes';
import { silentLogger } from '@antiphon/observability';
import { until } from '@antiphon/testing';
import { createChildrenRecord, readChildren } from './child-process.js';
import { checkHealth } from './service-process.js';
import { SupervisedProcess } from './supervised-process.js';
import type { Incarnation, ProcessSpec, SupervisionHooks } from './supervised-process.js';

const POLICY = { firstDelayMs: 20, maxDelayMs: 100, healthyAfterMs: 300 };

describe('SupervisedProcess', () => {
  let folder: string;
  let notes: string[];
  let changes: number;
  let exits: Incarnation[];
  const running: SupervisedProcess[] = [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'antiphon-supervised-'));
    notes = [];
    exits = [];
    changes = 0;
  });
  afterEach(async () => {
    await Promise.all(running.splice(0).map((process) => process.stop({ now: true })));
    rmSync(folder, { recursive: true, force: true });
  });

  const at = (name: string): string => join(folder, name);
  const paths = () => homeLayout(folder);

  /** Supervises a shell script that creates the file `ready` when it is ready. */
  const supervise = (
    script: string,
    change: Partial<ProcessSpec> = {},
    misses = 3,
    hooks: Partial<SupervisionHooks> = {},
  ): SupervisedProcess => {
    let incarnations = 0;
    const spec: ProcessSpec = {
      name: 'worker-1',
      rank: 0,
      stopSignal: 'SIGTERM',
      graceMs: 5_000,
      readyTimeoutMs: 10_000,
      attempts: 2,
      prepare: () =>
        Promise.resolve({
          serviceId: `worker-1-${++incarnations}`,
          launch: {
            command: '/bin/sh',
            args: ['-c', script],
            env: { PATH: process.env['PATH'] },
            cwd: folder,
            home: folder,
            logFile: at('worker.log'),
          },
        }),
      whenReady: async (_child, signal) => {
        await until(() => signal.aborted || existsSync(at('ready')), 60_000);
        signal.throwIfAborted();
        return 4711;
      },
      afterExit: (incarnation) => {
        rmSync(at('ready'), { force: true });
        exits.push(incarnation);
        return Promise.resolve();
      },
      ...change,
    };
    const supervised = new SupervisedProcess(spec, {
      logger: silentLogger,
      policy: POLICY,
      health: { everyMs: 50, misses, graceMs: 100 },
      children: createChildrenRecord(paths(), () => true, silentLogger),
      changed: () => void changes++,
      note: (line) => void notes.push(line),
      ...hooks,
    });
    running.push(supervised);
    return supervised;
  };

  const SERVES = 'touch ready; exec sleep 1000';
  const pidOf = (process: SupervisedProcess): number => process.status().pid ?? 0;

  // @shows review1-15
  it('ends and restarts a process that misses three health checks, also a suspended one', async () => {
    let responses = 0;
    const worker = supervise('trap "" TERM; touch ready; while :; do sleep 0.02; done', {
      checkHealth: () => (++responses > 2 ? Promise.reject(new Error('no response')) : Promise.resolve()),
    });
    await worker.start();
    const pid = pidOf(worker);
    process.kill(pid, 'SIGSTOP');
    await until(() => worker.status().restarts === 1 && worker.status().state === 'ready');
    expect(identify(pid)).toBeNull();
    expect(notes).toEqual(['worker-1 did not respond to 3 health checks and was ended; restarting']);
    expect(exits).toHaveLength(1);
  });

  it('continues a process that misses two health checks in a row', async () => {
    let checks = 0;
    const worker = supervise(SERVES, {
      checkHealth: () => (++checks % 3 === 0 ? Promise.resolve() : Promise.reject(new Error('no response'))),
    });
    await worker.start();
    await until(() => checks >= 12);
    expect(worker.status()).toMatchObject({ state: 'ready', restarts: 0 });
  });

  it('asks by the channel where the health route is silent, and restarts where both are', async () => {
    // Its port is closed, and it answers messages on the channel until it hangs.
    const program = `
      process.on('message', () => process.send({ type: 'pong' }));
      process.on('SIGUSR2', () => { for (;;); });
      process.send({ type: 'ready' });`;
    let checks = 0;
    const launch = {
      command: process.execPath,
      args: ['-e', program],
      env: { PATH: process.env['PATH'] },
      ...{ cwd: folder, home: folder, logFile: at('worker.log'), ipc: true },
    };
    const worker = supervise(
      '',
      {
        prepare: () => Promise.resolve({ launch }),
        whenReady: (child) => new Promise((resolve) => child.onceMessage('ready', () => resolve(1))),
        checkHealth: async (port, child) => {
          await checkHealth('127.0.0.1', port, child);
          checks++;
        },
      },
      1,
    );
    await worker.start();
    await until(() => checks >= 3);
    expect(worker.status()).toMatchObject({ state: 'ready', restarts: 0 });
    const pid = pidOf(worker);
    process.kill(pid, 'SIGUSR2');
    await until(() => worker.status().restarts === 1 && worker.status().state === 'ready');
    expect(identify(pid)).toBeNull();
    expect(notes).toEqual(['worker-1 did not respond to 1 health checks and was ended; restarting']);
  });

  it('becomes ready, is recorded for the next supervisor, and stops in order', async () => {
    const worker = supervise('trap "touch ended; exit 0" TERM; touch ready; while :; do sleep 0.02; done');
    await worker.start();
    expect(worker.status()).toMatchObject({
      state: 'ready',
      port: 4711,
      restarts: 0,
      serviceId: 'worker-1-1',
    });
    expect(readChildren(paths())).toMatchObject([
      { ...identify(pidOf(worker)), name: 'worker-1', stopSignal: 'SIGTERM', serviceId: 'worker-1-1' },
    ]);
    await worker.stop();
    expect(existsSync(at('ended'))).toBe(true);
    expect(worker.status()).toMatchObject({ state: 'stopped', pid: null });
    expect(readChildren(paths())).toEqual([]);
    expect(exits).toEqual([]);
  });

  it('restarts at once with a new id after a kill, once its leases were released', async () => {
    const worker = supervise(SERVES);
    await worker.start();
    const first = pidOf(worker);
    process.kill(first, 'SIGKILL');
    await until(() => worker.status().state === 'ready' && pidOf(worker) !== first);
    expect(exits.map(({ serviceId }) => serviceId)).toEqual(['worker-1-1']);
    expect(worker.status()).toMatchObject({ restarts: 1, serviceId: 'worker-1-2' });
    expect(notes).toEqual(['worker-1 was ended by SIGKILL; restarting']);
    expect(readChildren(paths()).map(({ pid }) => pid)).toEqual([pidOf(worker)]);
  });

  it('is started again while no record, state, note or log of it can be written', async () => {
    const full = (): never => {
      throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC', syscall: 'write' });
    };
    const children = { add: full, remove: full, retry: full };
    mkdirSync(at('worker.log'));
    const worker = supervise(SERVES, {}, 3, { children, changed: full, note: full });
    await worker.start();
    for (let restarts = 1; restarts <= 3; restarts++) {
      process.kill(pidOf(worker), 'SIGKILL');
      await until(() => worker.status().state === 'ready' && worker.status().restarts === restarts);
    }
  });

  it('is recorded once the record can be written again', async () => {
    mkdirSync(dirname(paths().childrenFile), { recursive: true });
    mkdirSync(paths().childrenFile);
    const children = createChildrenRecord(paths(), () => true, silentLogger);
    const worker = supervise(SERVES, {}, 3, { children });
    await worker.start();
    rmSync(paths().childrenFile, { recursive: true });
    children.retry();
    expect(readChildren(paths()).map(({ pid }) => pid)).toEqual([pidOf(worker)]);
  });

  it('restarts with growing delays while it keeps exiting', async () => {
    const worker = supervise('touch ready; echo x >> starts; sleep 0.05; exit 3');
    await worker.start();
    await until(() => notes.length >= 5);
    expect(notes.slice(0, 5)).toEqual([
      'worker-1 ended with exit code 3; restarting',
      'worker-1 ended with exit code 3; restarting in 0.02 s',
      'worker-1 ended with exit code 3; restarting in 0.04 s',
      'worker-1 ended with exit code 3; restarting in 0.08 s',
      'worker-1 ended with exit code 3; restarting in 0.1 s',
    ]);
  });

  it('fails its first start with its last output, after the allowed attempts', async () => {
    const worker = supervise('echo x >> starts; echo "no such database" >&2; exit 1');
    await expect(worker.start()).rejects.toThrow(
      /worker-1 did not start: it ended with exit code 1\.\nIts last output \(.*worker\.log\):\n {2}no such database/,
    );
    expect(readFileSync(at('starts'), 'utf8')).toBe('x\nx\n');
  });

  it('fails its first start when it is never ready, and ends its process', async () => {
    const worker = supervise('echo $$ > pid; exec sleep 1000', { readyTimeoutMs: 200, attempts: 1 });
    await expect(worker.start()).rejects.toThrow('it was not ready within 0.2 s');
    expect(identify(Number(readFileSync(at('pid'), 'utf8')))).toBeNull();
  });

  const itOnLinux = process.platform === 'linux' ? it : it.skip;

  itOnLinux(
    'fails its first start once it only waits, with its last output and no further attempt',
    async () => {
      const script = 'echo x >> starts; echo "waits for the database" >&2; exec sleep 1000';
      const worker = supervise(script, { idleTimeoutMs: 500 });
      await expect(worker.start()).rejects.toThrow(
        /worker-1 did not start: it waited for 0\.5 s and was not ready\.\nIts last output \(.*worker\.log\):\n {2}waits for the database/,
      );
      expect(readFileSync(at('starts'), 'utf8')).toBe('x\n');
      expect(worker.status()).toMatchObject({ pid: null });
    },
  );

  itOnLinux('fails its first start once it only polls', async () => {
    const worker = supervise('while :; do sleep 0.1; done', { idleTimeoutMs: 1_000 });
    await expect(worker.start()).rejects.toThrow('it waited for 1 s and was not ready');
  });

  itOnLinux.each([
    ['computes', 'i=0; while [ $i -lt 3000000 ]; do i=$((i+1)); done'],
    ['reads', 'for i in 1 2 3 4 5 6 7 8 9 10; do read -r line < zeros; sleep 0.1; done'],
  ])('waits for a first start that %s for longer than that', async (_name, work) => {
    // A shell reads byte by byte, and a file without a line end to its end.
    writeFileSync(at('zeros'), 'x'.repeat(300_000));
    const worker = supervise(`${work}; touch ready; exec sleep 1000`, { idleTimeoutMs: 400 });
    await worker.start();
    expect(worker.status()).toMatchObject({ state: 'ready', restarts: 0 });
  });

  itOnLinux('waits for a restart that does nothing as long as for any other', async () => {
    const script = '[ -e twice ] && sleep 1; touch twice ready; exec sleep 1000';
    const worker = supervise(script, { idleTimeoutMs: 300 });
    await worker.start();
    process.kill(pidOf(worker), 'SIGKILL');
    await until(() => worker.status().restarts === 1 && worker.status().state === 'ready');
  });

  it('is killed with its children when it does not stop in time', async () => {
    const worker = supervise(
      'trap "" TERM; sleep 1000 & echo $! > child; touch ready; while :; do sleep 0.02; done',
      { graceMs: 200 },
    );
    await worker.start();
    const child = Number(readFileSync(at('child'), 'utf8'));
    expect(identify(child)).not.toBeNull();
    await worker.stop();
    await until(() => identify(child) === null);
    expect(worker.status().state).toBe('stopped');
  });

  it('stops during its start', async () => {
    const worker = supervise('exec sleep 1000');
    const started = expect(worker.start()).rejects.toThrow('was stopped before it was ready');
    await until(() => worker.status().pid !== null);
    const pid = pidOf(worker);
    await worker.stop();
    await started;
    expect(identify(pid)).toBeNull();
  });
});
