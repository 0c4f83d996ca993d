import { execFile } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it, jest } from '@jest/globals';
import { bundledNode, cacheFolder, projectRoot } from './project.mjs';
import { HostileStack } from './testing/hostile-start.js';
import type { HostileStart } from './testing/hostile-start.js';

jest.setTimeout(600_000);

/** Time in which a start that cannot succeed says so, ms. */
const CLEAR_END_MS = 30_000;
/** User without rights, as images have it. */
const OTHER_USER = 65_534;
/** Runs the cases whose name contains this text, for a session at the keyboard. */
const ONLY = process.env['ANTIPHON_HOSTILE_CASE'] ?? '';
const isChosen = ([name]: readonly [string, ...unknown[]]): boolean => name.includes(ONLY);

const run = promisify(execFile);
const removed: (() => Promise<void> | void)[] = [];
afterAll(async () => {
  for (const remove of removed.reverse()) await remove();
});
const temporary = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-hostile-'));
  removed.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

const BASE = {
  ...{ PATH: process.env['PATH'], HOME: process.env['HOME'] },
  // Engines that other parts have fetched are not fetched again.
  ANTIPHON_CACHE: cacheFolder(),
};
const DEAD = 'http://127.0.0.1:9';
const PROXIES = Object.fromEntries(
  ['http_proxy', 'https_proxy', 'all_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'grpc_proxy'].map(
    (name) => [name, DEAD],
  ),
);
const POSTGRES = {
  ...{ PGHOST: 'nowhere.example', PGPORT: '1', PGUSER: 'stranger', PGPASSWORD: 'no', PGDATABASE: 'none' },
  ...{ PGSERVICE: 'none', PGCONNECT_TIMEOUT: '1', PGCLIENTENCODING: 'latin1', PGTZ: 'Nowhere/Nowhere' },
};

/** Starts a stack, completes a turn, checks each service and engine, and stops it. */
const expectTurn = async (start: Partial<HostileStart> = {}): Promise<void> => {
  const { env = {}, ...rest } = start;
  const own = { root: projectRoot, node: process.execPath, ...rest };
  const stack = new HostileStack({ ...own, env: { ...BASE, ...env } });
  try {
    const started = await stack.up();
    expect([started.code, started.output]).toEqual([0, expect.stringMatching(/\nready\n/)]);
    const chat = await stack.cli('chat', 'hello');
    expect([chat.code, chat.output]).toEqual([0, expect.stringContaining('hello')]);
    const status = await stack.cli('status');
    expect([status.code, status.output]).toEqual([0, expect.stringMatching(/^antiphon \S+: ok/m)]);
    expect(status.output).not.toContain('DOWN');
  } finally {
    await stack.remove();
  }
};

/** Expects a start to end with a message for a person, in time and without a stack of calls. */
const expectClearEnd = async (start: Partial<HostileStart>, message: RegExp): Promise<void> => {
  const { env = {}, ...rest } = start;
  const own = { root: projectRoot, node: process.execPath, ...rest };
  const stack = new HostileStack({ ...own, env: { ...BASE, ...env } });
  try {
    const { code, output, ms } = await stack.up();
    expect(output).toMatch(message);
    expect(output).not.toMatch(/\n\s+at .*\.m?js:\d+/);
    expect(code).not.toBe(0);
    expect(ms).toBeLessThan(CLEAR_END_MS);
  } finally {
    await stack.remove();
  }
};

const VARIABLES: readonly (readonly [string, Readonly<Record<string, string | undefined>>])[] = [
  ['proxies that are dead', PROXIES],
  ['proxies that are dead, which Node uses for all', { ...PROXIES, NODE_USE_ENV_PROXY: '1' }],
  ['PGSSLMODE=require', { PGSSLMODE: 'require' }],
  ['PGOPTIONS with a search path', { PGOPTIONS: '-c search_path=nowhere' }],
  ['all other variables of libpq', POSTGRES],
  ['NODE_OPTIONS with a heap of 64 MiB', { NODE_OPTIONS: '--max-old-space-size=64' }],
  ['a locale that does not exist', { LANG: 'xx_XX', LC_ALL: 'xx_XX.UTF-9', LANGUAGE: 'xx' }],
  ['variables of the clients of NATS and Temporal', { NATS_URL: DEAD, TEMPORAL_ADDRESS: 'nowhere:1' }],
  ['a TMPDIR that does not exist', { TMPDIR: join(temporary(), 'at/all') }],
  ['no HOME', { HOME: undefined }],
  ['NODE_ENV=production', { NODE_ENV: 'production' }],
  ['NODE_ENV=test with npm that omits packages', { NODE_ENV: 'test', npm_config_omit: 'dev' }],
];

// @shows U54 U57 U58 U59
describe('a start with variables of the user', () => {
  const cases = VARIABLES.filter(isChosen);
  if (cases.length > 0) it.each(cases)('completes a turn: %s', (_name, env) => expectTurn({ env }));
});

const NOT_COPIED = new Set(['.git', '.antiphon', '.nx', 'node_modules']);

/** Copies the clone. Its packages are hard links, since no start writes to them. */
const copyClone = async (target: string): Promise<void> => {
  mkdirSync(target, { recursive: true });
  for (const name of readdirSync(projectRoot))
    if (!NOT_COPIED.has(name)) await run('cp', ['-a', join(projectRoot, name), target]);
  await run('cp', ['-al', join(projectRoot, 'node_modules'), target]);
};

const asOtherUser = async (): Promise<Partial<HostileStart>> => {
  const folder = temporary();
  chmodSync(folder, 0o755);
  const [root, cache, home] = ['clone', 'cache', 'home'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  await copyClone(root);
  mkdirSync(cache);
  cpSync(join(cacheFolder(), 'engines'), join(cache, 'engines'), { recursive: true, verbatimSymlinks: true });
  await run('chown', ['-R', `${OTHER_USER}:${OTHER_USER}`, cache]);
  mkdirSync(home);
  chownSync(home, OTHER_USER, OTHER_USER);
  return {
    ...{ root, uid: OTHER_USER, home: join(home, 'antiphon') },
    env: { ANTIPHON_CACHE: cache, HOME: home },
  };
};

const readOnlyClone = async (): Promise<Partial<HostileStart>> => {
  const root = join(temporary(), 'clone');
  mkdirSync(root);
  await run('mount', ['--bind', projectRoot, root]);
  removed.push(async () => void (await run('umount', [root])));
  await run('mount', ['-o', 'remount,ro,bind', root]);
  return { root };
};

/** Gets a version of Node from the registry. */
const nodeOf = async (version: string): Promise<string> => {
  const folder = temporary();
  const npm = ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', folder, `node@${version}`];
  await run('npm', npm, { cwd: folder });
  const node = join(folder, 'node_modules/node/bin/node');
  if (!existsSync(node)) throw new Error(`node@${version} has no program`);
  return node;
};

const MACHINES: readonly (readonly [string, () => Promise<Partial<HostileStart>>])[] = [
  ['a umask that hides all from others', async () => ({ umask: '077' })],
  ['another user than root', asOtherUser],
  ['a clone that is read-only', readOnlyClone],
  [
    'a path with spaces and umlauts',
    async () => {
      const root = join(temporary(), 'Über uns', 'mein Ordner');
      await copyClone(root);
      return { root, home: join(root, 'die Daten') };
    },
  ],
  [
    'a home whose path is too long for a socket',
    async () => ({ home: join(temporary(), 'long-name-of-a-folder/'.repeat(9), 'home') }),
  ],
  ['Node 20', async () => ({ node: await nodeOf('20') })],
  ['Node 22', async () => ({ node: await nodeOf('22') })],
  ['Node 24', async () => ({ node: bundledNode() })],
  [
    'Node 24 with proxies that are dead, which it uses for all',
    async () => ({ node: bundledNode(), env: { ...PROXIES, NODE_USE_ENV_PROXY: '1' } }),
  ],
];

// @shows U55 U56 U58
describe('a start on a machine of another kind', () => {
  const cases = MACHINES.filter(isChosen);
  if (cases.length > 0)
    it.each(cases)('completes a turn: %s', async (_name, prepare) => expectTurn(await prepare()));
});

/** Writes a program that says its version as an engine does, and then only waits. */
const waitingProgram = (name: string, version: string): string => {
  const program = join(temporary(), name);
  const script = `#!/bin/sh\ncase "$*" in *version|-v) echo "${version}"; exit 0;; esac\n`;
  writeFileSync(program, `${script}echo "${name} waits for nothing" >&2\nexec sleep 1000\n`, { mode: 0o755 });
  return program;
};

/** Starts a server that takes connections and never answers. Returns its address. */
const silentServer = async (): Promise<string> => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  removed.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
};

type Environment = Readonly<Record<string, string>>;
const REFUSED: readonly (readonly [string, () => Environment | Promise<Environment>, RegExp])[] = [
  [
    'a home that cannot be made',
    () => ({ HOME: '/proc/nowhere', ANTIPHON_CACHE: '/proc/cache' }),
    /\/proc\/cache/,
  ],
  [
    'a database that is not there',
    () => ({ ANTIPHON_DATABASE_URL: 'postgresql://u:p@127.0.0.1:9/db' }),
    /ANTIPHON_DATABASE_URL points at 127\.0\.0\.1:9/,
  ],
  [
    'a NATS that is not there',
    () => ({ ANTIPHON_NATS_URL: 'nats://127.0.0.1:9' }),
    /ANTIPHON_NATS_URL points at/,
  ],
  [
    'a Temporal that is not there',
    () => ({ ANTIPHON_TEMPORAL_ADDRESS: '127.0.0.1:9' }),
    /ANTIPHON_TEMPORAL_ADDRESS points at/,
  ],
  [
    'a database that never answers',
    async () => ({ ANTIPHON_DATABASE_URL: `postgresql://u:p@${await silentServer()}/db` }),
    /ANTIPHON_DATABASE_URL points at 127\.0\.0\.1:\d+/,
  ],
  [
    'a NATS that never answers',
    async () => ({ ANTIPHON_NATS_URL: `nats://${await silentServer()}` }),
    /ANTIPHON_NATS_URL points at 127\.0\.0\.1:\d+/,
  ],
  [
    'a Temporal that never answers',
    async () => ({ ANTIPHON_TEMPORAL_ADDRESS: await silentServer() }),
    /ANTIPHON_TEMPORAL_ADDRESS points at 127\.0\.0\.1:\d+/,
  ],
  [
    'its own NATS that never is ready',
    () => ({ ANTIPHON_NATS_SERVER: waitingProgram('nats-server', 'nats-server: v2.15.1') }),
    /NATS did not start: it waited for 20 s and was not ready\.[\s\S]*nats-server waits for nothing/,
  ],
  [
    'its own Temporal that never is ready',
    () => ({
      ANTIPHON_TEMPORAL: waitingProgram('temporal', 'temporal version 1.5.1 (Server 1.30.0, UI 2.4)'),
    }),
    /Temporal did not start: it waited for 20 s and was not ready\.[\s\S]*temporal waits for nothing/,
  ],
];

describe('a start that cannot succeed', () => {
  const cases = REFUSED.filter(isChosen);
  if (cases.length > 0)
    it.each(cases)('ends within 30 s with the cause: %s', async (_name, prepare, message) =>
      expectClearEnd({ env: await prepare() }, message),
    );
});
