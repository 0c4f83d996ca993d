import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import protocol from '@temporalio/proto';
import { Worker } from '@temporalio/worker';
import type pg from 'pg';
import { ALL_WORKSPACES, createPool } from '@antiphon/database';
import { listArchiveRequests, listArchives, restoreArchive, verifyChain } from '@antiphon/event-store';
import { renderMetrics, silentLogger, systemClock } from '@antiphon/observability';
import { Archiver } from '@antiphon/service-host';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { newAddress, submitTo, until } from '@antiphon/agent-features/testing/agent-world';
import { createRunsWorld } from '@antiphon/agent-features/testing/runs-world';
import type { RunsProcess, RunsWorld } from '@antiphon/agent-features/testing/runs-world';
import { createArchiveOldEvents } from './archive-old-events.js';

jest.setTimeout(60_000);

const DYING = fileURLToPath(new URL('fixtures/archive-and-die.mjs', import.meta.url));
const DAYS = 30;
/** If set, the history of this spec is stored, to be replayed by every later version. */
const record = process.env['ANTIPHON_RECORD_HISTORIES'];
const HISTORIES = fileURLToPath(new URL('../../../agent/workflows/histories/', import.meta.url));
const { History } = protocol.temporal.api.history.v1;

let database: TestDatabase;
let world: RunsWorld;
let admin: pg.Pool;
let archiverPool: pg.Pool;
let archiver: Archiver;
let folder: string;
let agent: RunsProcess;

beforeAll(async () => {
  database = await createTestDatabase();
  admin = createPool({ url: database.url, applicationName: 'spec', max: 2 });
  archiverPool = createPool({
    ...{ url: database.urlFor('archiver'), applicationName: 'spec', max: 2 },
    workspace: ALL_WORKSPACES,
  });
  world = await createRunsWorld(
    database,
    process.env['ANTIPHON_TEST_NATS_URL'] ?? '',
    process.env['ANTIPHON_TEST_TEMPORAL_ADDRESS'] ?? '',
  );
});
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'antiphon-retention-'));
  agent = world.process({ retention: { folder, days: DAYS } });
  archiver = startArchiver();
});
afterEach(async () => {
  await Promise.all([agent.stop(), archiver.stop()]);
  await admin.query('delete from archive_requests');
  for (const { archiveId } of await listArchives(admin)) await restoreArchive(admin, folder, archiveId);
  await rm(folder, { recursive: true });
});
afterAll(async () => {
  await archiverPool?.end();
  await admin?.end();
  await world?.close();
});

const startArchiver = (): Archiver =>
  new Archiver({ pool: archiverPool, folder, logger: silentLogger, pollMs: 50 });

/** Makes all events older. Hashes do not cover their times. */
const age = (days: number): Promise<unknown> =>
  admin.query(`set session_replication_role = replica;
    update events set recorded_at = recorded_at - interval '${days} days';
    set session_replication_role = default`);
const talk = async (address = newAddress()): Promise<string> => {
  const { sessionId } = await submitTo(agent, { address });
  await world.agents.ended(sessionId);
  return sessionId;
};
/** Waits for the projection, because events that it has not processed stay in the log. */
const projected = () =>
  until(async () => {
    const { rows } = await admin.query(
      `select from projection_checkpoints having min(position) < (select max(position) from events)`,
    );
    return rows.length === 0;
  });
const hasLeft = (sessionId: string): Promise<boolean> =>
  world.agents.events(sessionId).then(
    () => false,
    (error: { code: string }) => error.code === 'LOG.ARCHIVED',
  );
const fire = async (): Promise<string> => {
  const handle = world.temporal.schedule.getHandle(`${world.taskQueue}/archive-old-events`);
  await until(
    () =>
      handle.describe().then(
        () => true,
        () => false,
      ),
    30_000,
  );
  const { info } = await handle.describe();
  await handle.trigger();
  const fired = await until(async () => {
    const now = (await handle.describe()).info;
    return now.numActionsTaken > info.numActionsTaken && now.recentActions.at(-1);
  }, 30_000);
  if (fired.action.type !== 'startWorkflow') throw new Error('the schedule did nothing');
  const { workflowId } = fired.action.workflow;
  await world.temporal.workflow.getHandle(workflowId).result();
  return workflowId;
};
const keep = async (name: string, workflowId: string): Promise<void> => {
  if (!record) return;
  const as = { enums: String, longs: String, bytes: String };
  const fetched = await world.temporal.workflow.getHandle(workflowId).fetchHistory();
  const anonymous = (key: string, value: unknown): unknown => (key === 'identity' ? 'recorded' : value);
  const history = History.toObject(History.fromObject(fetched as object), as);
  await writeFile(`${HISTORIES}${name}.${record}.json`, `${JSON.stringify(history, anonymous, 1)}\n`);
};
const sweepHere = (waitMs = 30_000) =>
  createArchiveOldEvents({
    waitMs,
    ...{ pool: world.agents.pool, clock: systemClock, logger: silentLogger },
    retention: { folder, days: DAYS },
  })(new AbortController().signal);

describe('retention', () => {
  it('archives old conversations by a schedule, and keeps recent ones', async () => {
    const [old, older] = [await talk(), await talk()];
    await age(DAYS + 2);
    const young = await talk();
    await age(DAYS - 2);
    const newest = await talk();
    await projected();
    await keep('sweep-archived', await fire());
    expect(await Promise.all([old, older, young, newest].map(hasLeft))).toEqual([true, true, false, false]);
    const [archive, ...more] = await listArchives(admin);
    expect(more).toEqual([]);
    expect(await readdir(folder)).toEqual([archive?.file]);
    expect((await renderMetrics()).text).toContain(`antiphon_log_archived_events_total ${archive?.events}`);
    await keep('sweep-nothing-old', await fire());
    expect(await listArchives(admin)).toHaveLength(1);
  });

  it('replays every recorded history of its Temporal workflow', async () => {
    const codePath = createRequire(import.meta.url).resolve('@antiphon/agent-workflows/bundle');
    const files = (await readdir(HISTORIES)).filter((name) => name.startsWith('sweep-'));
    expect(files.length).toBeGreaterThanOrEqual(record ? 0 : 2);
    for (const file of files) {
      const history = History.fromObject(JSON.parse(await readFile(HISTORIES + file, 'utf8')) as object);
      await Worker.runReplayHistory({ workflowBundle: { codePath } }, history, file);
    }
  });

  it('starts a new session for an archived address, and reports where the old one is', async () => {
    const address = newAddress();
    const first = await talk(address);
    await age(DAYS + 2);
    await talk();
    await projected();
    await sweepHere();
    // A process with the session in memory would continue it.
    await agent.stop();
    agent = world.process();
    await expect(submitTo(agent, { sessionId: first })).rejects.toMatchObject({ code: 'LOG.ARCHIVED' });
    const second = await talk(address);
    expect(second).not.toBe(first);
    const [started] = await world.agents.events(second);
    expect(started).toMatchObject({ type: 'SessionStarted', data: { previousSessionId: first } });
  });

  // @shows review1-7
  describe('after a kill', () => {
    let old: string;
    let open: string;
    beforeEach(async () => {
      [old, open] = [await talk(), await talk()];
      await age(DAYS + 2);
      await talk();
      await projected();
    });
    const hasAny = () => Promise.all([old, open].map(hasLeft));
    const time = () => new Date(systemClock.now() - DAYS * 86_400_000).toISOString();
    /** Kills a process that does a step of the archive while `lock` stops it. */
    const killAt = async (step: string, lock: string, hasBegun: () => Promise<boolean>): Promise<void> => {
      const holder = await admin.connect();
      await holder.query(`begin; set local idle_in_transaction_session_timeout = 0; ${lock}`);
      const url = database.urlFor(step === 'propose' ? 'agent' : 'archiver');
      const dying = spawn(process.execPath, [DYING, step, url, folder, time()], { stdio: 'inherit' });
      await until(hasBegun, 30_000);
      dying.kill('SIGKILL');
      await once(dying, 'exit');
      await holder.query('rollback');
      holder.release();
    };
    const isWaitingForLock = async (): Promise<boolean> => {
      const { rowCount } = await admin.query(
        `select from pg_stat_activity where application_name = 'archive-and-die' and wait_event_type = 'Lock'`,
      );
      return rowCount !== 0;
    };
    /** Ends what the dead process left, and compares the log with the one before. */
    const finish = async (files: number): Promise<void> => {
      const before = await world.agents.store.readLog({ after: 0, limit: 1_000 });
      // Statements of the dead process may still hold their locks.
      const left = await until(() => sweepHere().catch(() => 0), 30_000);
      expect(await hasAny()).toEqual([true, true]);
      expect(await sweepHere()).toBe(0);
      const archives = await listArchives(admin);
      expect(archives.map(({ events }) => events)).toEqual([left]);
      expect(await listArchiveRequests(admin)).toEqual([]);
      expect(await readdir(folder)).toHaveLength(files);
      await restoreArchive(admin, folder, archives[0]!.archiveId);
      expect(await world.agents.store.readLog({ after: 0, limit: 1_000 })).toEqual(before);
      for (const sessionId of [old, open])
        expect(verifyChain(await world.agents.events(sessionId))).toMatchObject({ isIntact: true });
    };

    it('between the file and its request, the sweep makes another file', async () => {
      await killAt('propose', 'lock table archive_requests', isWaitingForLock);
      expect(await hasAny()).toEqual([false, false]);
      expect(await listArchiveRequests(admin)).toEqual([]);
      await finish(2);
    });

    it('between the request and the log, the archiver executes the same request', async () => {
      await archiver.stop();
      expect(await sweepHere(0)).toBe(0);
      const [request] = await listArchiveRequests(admin);
      expect(await hasAny()).toEqual([false, false]);
      expect(await sweepHere(0)).toBe(0);
      expect(await listArchiveRequests(admin)).toEqual([request]);
      archiver = startArchiver();
      await finish(1);
    });

    it('of the archiver inside its transaction, the next one executes the request', async () => {
      await archiver.stop();
      await sweepHere(0);
      await killAt(
        'settle',
        `select from stream_heads where stream_id = 'session-${old}' for update`,
        isWaitingForLock,
      );
      expect(await hasAny()).toEqual([false, false]);
      archiver = startArchiver();
      await finish(1);
    });
  });

  it('withdraws a request that the archiver refused, and archives at its next run', async () => {
    const old = await talk();
    await age(DAYS + 2);
    await talk();
    await projected();
    await archiver.stop();
    await sweepHere(0);
    await admin.query(`update archive_requests set sha256 = '\\x00'`);
    archiver = startArchiver();
    await until(async () => (await listArchiveRequests(admin))[0]?.refusal, 30_000);
    expect(await sweepHere()).toBeGreaterThan(0);
    expect(await hasLeft(old)).toBe(true);
    expect(await readdir(folder)).toHaveLength(1);
  });

  it('stops at the shutdown of its process without archiving', async () => {
    const old = await talk();
    await age(DAYS + 2);
    await talk();
    await projected();
    const sweep = createArchiveOldEvents({
      ...{ pool: world.agents.pool, clock: systemClock, logger: silentLogger },
      retention: { folder, days: DAYS },
    });
    await expect(sweep(AbortSignal.abort(new Error('stopping')))).rejects.toThrow('stopping');
    expect([await hasLeft(old), await readdir(folder), await listArchives(admin)]).toEqual([false, [], []]);
  });
});
