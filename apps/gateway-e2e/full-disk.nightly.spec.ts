import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  statfsSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { auditUntilQuiet } from '@antiphon/testing/faults';
import {
  ALL_COMPLETE,
  assertCommandsHold,
  checkCommands,
  checkFigure,
  report,
  startLoad,
  type Load,
} from '@antiphon/testing/load';
import { startStack, type TestStack } from '@antiphon/testing/stack';
import { letTimePass } from '@antiphon/testing/waits';
import { readEvents, scriptedConfig, waitForValue } from './stack-under-test.js';

jest.setTimeout(600_000);

const CONFIG = scriptedConfig(`
[[agents]]
id = "main"
name = "Main"
provider = "scripted"
`);
const SESSIONS = 8;
/** Between two turns of a session, so that the load itself does not fill the disk. */
const PAUSE_MS = 1_500;
/** Time for which the disks are full, and the time in it at which all processes are killed. */
const FULL_MS = 20_000;
const KILL_AFTER_MS = 5_000;
const REFILL_MS = 50;
/** Promised time from free space until every session has completed a turn again. */
const RECOVERY_MS = 30_000;
const MIB = 1024 ** 2;

/** Returns why this machine cannot mount a small file system, or null. */
const cannotMount = (): string | null => {
  if (process.platform !== 'linux') return 'needs Linux (tmpfs)';
  if (process.getuid?.() !== 0) return 'needs root (mount)';
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-mount-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder], { stdio: 'ignore' });
    execFileSync('umount', [folder]);
    return null;
  } catch {
    return 'mount is not permitted';
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/** Small file systems of one test. */
class SmallDisks {
  private readonly paths: string[] = [];

  /** Mounts one of this size. Only root may list it, and PostgreSQL's user may pass through it. */
  mount(path: string, mib: number): void {
    mkdirSync(path, { recursive: true });
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mib}m,mode=0711`, 'tmpfs', path]);
    this.paths.push(path);
  }

  /** Writes until there is no space left. */
  fill(): void {
    for (const path of this.paths) {
      const file = openSync(this.fillerOf(path), 'a');
      for (let bytes = MIB; bytes >= 4_096;)
        try {
          writeSync(file, Buffer.alloc(bytes));
        } catch {
          bytes /= 2;
        }
      closeSync(file);
    }
  }

  free(): void {
    for (const path of this.paths) rmSync(this.fillerOf(path));
  }

  freeMib(): string {
    return this.paths
      .map((path) => statfsSync(path))
      .map(({ bavail, bsize }) => ((bavail * bsize) / MIB).toFixed(1))
      .join(', ');
  }

  unmount(): void {
    for (const path of this.paths.splice(0).reverse()) execFileSync('umount', ['-l', path]);
  }

  private fillerOf(path: string): string {
    return join(path, 'filler');
  }
}

const entriesOf = (stack: TestStack) => {
  const { services, engines } = stack.stackJson();
  return [...Object.values(services).flat(), ...Object.values(engines)];
};

const killAll = (stack: TestStack): void => {
  for (const { pid } of entriesOf(stack)) {
    // One that ended by itself has no id until it is started again.
    if (!pid) continue;
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It ended by itself, and its restart cannot be written to stack.json.
    }
  }
};

/** Keeps the disks full. Kills every service and engine once, if `kills` says so. */
const keepFull = async (disks: SmallDisks, stack: TestStack, kills: boolean): Promise<void> => {
  const from = performance.now();
  for (let isKilled = !kills; performance.now() - from < FULL_MS;) {
    disks.fill();
    if (!isKilled && performance.now() - from > KILL_AFTER_MS) {
      isKilled = true;
      killAll(stack);
    }
    await letTimePass(REFILL_MS);
  }
};

/** Returns the number of the last event that NATS has stored, 0 while it does not answer. */
const lastRelayed = async ({ stackJson, nats }: TestStack): Promise<number> => {
  const { user, password: pass } = nats;
  const options = { user, pass, inboxPrefix: '_INBOX.operator', reconnect: false };
  const connection = await connect({ servers: stackJson().engines.nats.address, ...options });
  try {
    return (await (await jetstreamManager(connection)).streams.info('EVENTS')).state.last_seq;
  } finally {
    await connection.close();
  }
};

/** Waits until each session has completed a turn that was sent after `from`. */
const waitForRecovery = async (stack: TestStack, load: Load, from: number): Promise<number> => {
  await waitForValue(
    'a turn of every session',
    () => {
      const peers = new Set(load.done.flatMap(({ askedAt, peer }) => (askedAt > from ? [peer] : [])));
      return Promise.resolve(peers.size === SESSIONS ? true : undefined);
    },
    4 * RECOVERY_MS,
  );
  await waitForValue(
    'every process and a ready gateway',
    async () => {
      if (entriesOf(stack).some(({ state }) => state !== 'ready')) return undefined;
      const response = await fetch(`${stack.stackJson().urls.gateway}/readyz`).catch(() => null);
      return response?.status === 200 ? true : undefined;
    },
    4 * RECOVERY_MS,
  );
  // A stream of NATS keeps a write error until its server is started again.
  const before = await lastRelayed(stack).catch(() => 0);
  await waitForValue(
    'events that NATS stores',
    async () => ((await lastRelayed(stack).catch(() => 0)) > before ? true : undefined),
    4 * RECOVERY_MS,
  );
  return performance.now() - from;
};

const reason = cannotMount();
const describeWithMounts = reason === null ? describe : describe.skip;

describeWithMounts(`a full disk${reason === null ? '' : ` (${reason})`}`, () => {
  const disks = new SmallDisks();
  let parent: string;
  let stack: TestStack | undefined;
  afterEach(async () => {
    await stack?.stop();
    stack = undefined;
    disks.unmount();
    rmSync(parent, { recursive: true, force: true });
  });

  // @shows review2-3-a-full-disk
  it.each<[string, Readonly<Record<string, number>>, boolean]>([
    ['a home of 64 MiB', { '.': 64 }, false],
    ['a home of 64 MiB, with kill -9 of every process', { '.': 64 }, true],
    [
      'disks for the database, the NATS store and the logs, as in Compose',
      { postgres: 64, nats: 16, logs: 4 },
      true,
    ],
  ])('under %s loses nothing, and all continues by itself', async (_, sizes, kills) => {
    parent = mkdtempSync(join(tmpdir(), 'antiphon-full-'));
    chmodSync(parent, 0o711);
    const prepareHome = (home: string): void => {
      for (const [folder, mib] of Object.entries(sizes)) disks.mount(join(home, folder), mib);
    };
    const running = await startStack({ config: CONFIG, parent, prepareHome, keepHome: true });
    stack = running;
    report(`free after the start: ${disks.freeMib()} MiB`);
    const load = startLoad({
      ...{ wsUrls: [running.wsUrl], sessions: SESSIONS, agent: 'main' },
      ...{ answerMs: 15_000, pauseMs: PAUSE_MS },
    });
    await waitForValue('turns', () => Promise.resolve(load.done.length >= 20 ? true : undefined));
    await keepFull(disks, running, kills);
    const freedAt = performance.now();
    disks.free();
    const recoveryMs = await waitForRecovery(running, load, freedAt);
    report(`recovered after ${Math.round(recoveryMs)} ms; free: ${disks.freeMib()} MiB`);
    await load.stop();
    const verdict = checkCommands({ turns: load.done, runs: [] }, await readEvents(running), ALL_COMPLETE);
    assertCommandsHold('a full disk', verdict, ALL_COMPLETE);
    expect((await auditUntilQuiet(running)).output).toContain('everything holds');
    checkFigure({ what: 'recovery after free space', value: recoveryMs, unit: 'ms', atMost: RECOVERY_MS });
  });
});
