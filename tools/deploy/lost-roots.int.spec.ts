import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { execFile, fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import type { AuditReport } from '@antiphon/audit-features';
import { projectRoot } from '@antiphon/bootstrap/project';
import { createPool } from '@antiphon/database';
import { canonicalJson, createPostgresEventStore, genesisHash, hashEvent } from '@antiphon/event-store';
import type { JsonObject } from '@antiphon/kernel';
import { createTestDatabase, until } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { composeContainer, kubernetesClaims, kubernetesContainer } from './testing/container-forms.js';
import type { Container } from './testing/container-forms.js';

// An attack on evidence. The owner of the database changes an answer, recomputes the chain of its
// stream and removes the signed roots. Then the container of the signer starts again.

const MEMORY = join(projectRoot, 'apps/memory/dist/main.js');
const CLI = join(projectRoot, 'apps/cli/bin/antiphon.mjs');
const toText = (pem: string | Buffer): string => Buffer.from(pem).toString('base64');
const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const PRIVATE = toText(privateKey.export({ type: 'pkcs8', format: 'pem' }));
const PUBLIC = toText(publicKey.export({ type: 'spki', format: 'pem' }));

let folder: string;
let database: TestDatabase;
let running: ChildProcess | null = null;
let containers = 0;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'antiphon-lost-roots-'));
  database = await createTestDatabase();
});
afterEach(async () => {
  await stop('SIGKILL');
  await database.drop();
  rmSync(folder, { recursive: true });
});

/** Returns the variables of a new container, with its folders in this spec's own. */
const environmentOf = ({ env, mounts }: Container): Record<string, string> => {
  const own = join(folder, `container-${++containers}`);
  const places = mounts.map(({ path, volume }) => {
    const place = join(volume === null ? own : join(folder, 'volumes', volume), volume === null ? path : '');
    mkdirSync(place, { recursive: true });
    return { path, place };
  });
  // The longest path first: /var/lib/antiphon-roots is not in /var/lib/antiphon.
  const sorted = places.toSorted((a, b) => b.path.length - a.path.length);
  const locate = (value: string): string => {
    const found = sorted.find(({ path }) => value === path || value.startsWith(`${path}/`));
    return found ? join(found.place, value.slice(found.path.length)) : value;
  };
  const paths = Object.entries(env).filter(([, value]) => value.startsWith('/var/lib/'));
  return Object.fromEntries(paths.map(([name, value]) => [name, locate(value)]));
};

const start = async (container: Container): Promise<Record<string, string>> => {
  const env = environmentOf(container);
  const url = process.env['ANTIPHON_TEST_NATS_URL'] ?? '';
  const child = fork(MEMORY, [], {
    env: {
      ...{ PATH: process.env['PATH'] ?? '', NODE_ENV: 'production', ...env },
      ...{ ANTIPHON_SERVICE_DATABASE_URL: database.urlFor('memory'), ANTIPHON_SERVICE_NATS_URL: url },
      ...{ ANTIPHON_LOG_SIGNING_KEY: PRIVATE, ANTIPHON_LOG_ROOT_EVERY_S: '1' },
      ...{ ANTIPHON_SERVICE_HTTP_HOST: '127.0.0.1', ANTIPHON_SERVICE_HTTP_PORT: '0' },
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    execArgv: [],
  });
  running = child;
  output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await once(child, 'message');
  return env;
};
let output = '';

const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<void> => {
  const child = running;
  running = null;
  if (child === null || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  await ended;
};

const stream = `session-${randomUUID()}`;
const ask = async (): Promise<void> => {
  const pool = createPool({ url: database.urlFor('agent'), applicationName: 'spec', max: 1 });
  const log = createPostgresEventStore(pool);
  const metadata = { correlationId: 'spec', service: 'agent' };
  const events = ['no', 'never'].map((text) => ({
    ...{ eventId: randomUUID(), type: 'SpecAnswered', schemaVersion: 1, data: { text }, metadata },
  }));
  await log.append({ workspace: 'default', streams: [{ streamId: stream, expectedVersion: 0, events }] });
  await log.close();
  await pool.end();
};

/** Changes the answer, and recomputes the chain of its stream with its head. */
const forge = async (): Promise<void> => {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query(`set session_replication_role = 'replica'`);
  await client.query(
    `update events set data = '{"text":"yes"}' where stream_id = $1 and stream_version = 1`,
    [stream],
  );
  const { rows } = await client.query<Record<string, unknown>>(
    'select * from events where stream_id = $1 order by stream_version',
    [stream],
  );
  let hash = genesisHash('default');
  for (const row of rows) {
    hash = hashEvent(hash, {
      ...{ streamId: stream, streamVersion: Number(row['stream_version']) },
      ...{ eventId: String(row['event_id']), type: String(row['type']) },
      schemaVersion: Number(row['schema_version']),
      data: canonicalJson(row['data'] as JsonObject),
      metadata: canonicalJson(row['metadata'] as JsonObject),
    });
    await client.query('update events set hash = $1 where position = $2', [hash, row['position']]);
  }
  await client.query('update stream_heads set hash = $1 where stream_id = $2', [hash, stream]);
  await client.query('delete from agent_session_snapshots; delete from log_roots');
  await client.end();
};

const rootPositions = (file: string): number[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        // The last line is written at this moment, or empty.
        .slice(0, -1)
        .map((line) => (JSON.parse(line) as { position: number }).position)
    : [];

interface Audited {
  readonly code: number;
  readonly report: AuditReport;
  readonly broken: readonly string[];
}

/** Audits as a container of the command line does: with the public key alone. */
const audit = async (container: Container): Promise<Audited> => {
  const env = {
    ...{ PATH: process.env['PATH'] ?? '', ...environmentOf(container) },
    ...{ ANTIPHON_DATABASE_URL: database.url, ANTIPHON_LOG_SIGNING_KEY: PUBLIC },
  };
  const run = promisify(execFile)(process.execPath, [CLI, 'audit', '--json'], { env, cwd: folder });
  const { stdout, code } = await run.then(
    ({ stdout: text }) => ({ stdout: text, code: 0 }),
    (error: { stdout: string; code: number }) => error,
  );
  const report = JSON.parse(stdout) as AuditReport;
  const broken = report.checks.filter(({ violations }) => violations > 0).map(({ name }) => name);
  return { code, report, broken };
};
const ROOTS = ['signed-roots-match', 'roots-begin-with-the-log'];

interface Form {
  readonly name: string;
  readonly signer: () => Container;
  readonly cli: () => Container;
}
const FORMS: readonly Form[] = [
  { name: 'Compose', signer: () => composeContainer('memory'), cli: () => composeContainer('cli') },
  {
    name: 'Kubernetes',
    signer: () => kubernetesContainer('log-signer.yaml'),
    cli: () => kubernetesContainer('log-signer.yaml'),
  },
];

describe('the evidence of containers', () => {
  it.each(FORMS)(
    'reveals a changed answer: the file of roots outlives its container, in $name',
    async ({ signer, cli }) => {
      const { ANTIPHON_LOG_ROOTS_FILE: file = '' } = await start(signer());
      await until(() => rootPositions(file).includes(0), 30_000);
      await ask();
      await until(() => rootPositions(file).includes(2), 30_000);
      expect((await audit(cli())).broken.filter((name) => ROOTS.includes(name))).toEqual([]);
      await stop();
      await forge();
      const restarted = await start(signer());
      expect(restarted['ANTIPHON_LOG_ROOTS_FILE']).toBe(file);
      await until(() => output.includes('log root refused'), 30_000);
      const { code, broken, report } = await audit(cli());
      expect(code).toBe(1);
      expect(broken).toContain('signed-roots-match');
      expect(report.first?.position).toBeGreaterThan(0);
    },
    60_000,
  );

  it('reveals that the roots are gone, and an adoption says who accepted the log', async () => {
    const [signer, cli] = [() => composeContainer('memory'), () => composeContainer('cli')];
    const { ANTIPHON_LOG_ROOTS_FILE: file = '' } = await start(signer());
    await ask();
    await until(() => rootPositions(file).includes(2), 30_000);
    await stop();
    await forge();
    rmSync(file);
    await start(signer());
    await until(() => output.includes('log root refused'), 30_000);
    expect(rootPositions(file)).toEqual([]);
    const { code, broken } = await audit(cli());
    expect(code).toBe(1);
    expect(broken).toContain('roots-begin-with-the-log');
    await adoptIn(signer());
    const adopted = await audit(cli());
    expect(adopted.broken.filter((name) => ROOTS.includes(name))).toEqual([]);
    expect(adopted.report.signing?.begin).toMatchObject({
      ...{ kind: 'adoption', position: 2, actor: 'ada', reason: 'the volume was lost' },
    });
  }, 120_000);
});

/** Adopts the log in a container of the signer, as `docker compose exec` and `kubectl exec` do. */
const adoptIn = async (container: Container): Promise<void> => {
  const env = {
    ...{ PATH: process.env['PATH'] ?? '', ...environmentOf(container) },
    ...{ ANTIPHON_SERVICE_DATABASE_URL: database.urlFor('memory'), ANTIPHON_LOG_SIGNING_KEY: PRIVATE },
  };
  const args = [MEMORY, 'adopt-roots', '--reason', 'the volume was lost', '--by', 'ada'];
  await promisify(execFile)(process.execPath, args, { env });
};

describe('the volumes of Kubernetes', () => {
  it('are claims, and no part of a pod', () => {
    const volumes = kubernetesContainer('log-signer.yaml').mounts.flatMap(({ volume }) => volume ?? []);
    expect(volumes.toSorted()).toEqual(['log-archives', 'log-roots']);
    expect(kubernetesClaims()).toEqual(expect.arrayContaining(volumes));
    const agentVolumes = kubernetesContainer('agent.yaml').mounts.flatMap(({ volume }) => volume ?? []);
    expect(agentVolumes).toEqual(['log-archives']);
  });
});
