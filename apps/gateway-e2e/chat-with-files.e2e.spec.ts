import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import pg from 'pg';
import type { MockModel } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import { ChatStream } from './chat-stream.js';
import {
  BROKEN,
  CODER,
  MENDED,
  REPOSITORY,
  ROLES,
  configOf,
  scenario,
  startPlayingModel,
} from './chat-with-files-model.js';
import {
  CANARY_KEY,
  readEvents,
  runCli,
  startStackWith,
  waitForRoot,
  type CliRun,
} from './stack-under-test.js';

jest.setTimeout(120_000);

interface Chat {
  readonly id: string;
  readonly path: string;
  readonly agentId: string;
  readonly sessionId: string;
}
interface Entry {
  readonly path: string;
  readonly digest: string;
  readonly is_virtual: boolean;
}
interface Change {
  readonly version: number;
  readonly type: string;
  readonly path: string;
  readonly cause: Readonly<Record<string, string>>;
}

let mock: MockModel;
let stack: TestStack;
let folder: string;
const streams: ChatStream[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'antiphon-chat-'));
  await writeFile(join(folder, 'scenario.json'), JSON.stringify(scenario));
  mock = await startPlayingModel();
  const config = configOf(mock.url, join(folder, 'scenario.json'));
  stack = await startStackWith(config, { gateway: 2 }, { shareDatabase: true });
});
afterAll(async () => {
  for (const stream of streams) stream.close();
  await stack?.stop();
  await mock?.close();
  await rm(folder, { recursive: true, force: true });
});

const urlOf = (path: string, gateway = 0): string =>
  `${stack.wsUrls()[gateway]?.replace('ws:', 'http:').replace(/\/ws$/, '') ?? ''}/api/v1${path}`;
const request = async (method: string, path: string, body?: object): Promise<string> => {
  const response = await fetch(urlOf(path), {
    method,
    headers: body ? { 'content-type': 'application/json' } : {},
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text;
};
const json = async <T>(method: string, path: string, body?: object): Promise<T> =>
  JSON.parse(await request(method, path, body)) as T;
const WORKSPACE = '/workspaces/default';
const fileOf = (path: string): string => `${WORKSPACE}/files/${encodeURIComponent(path)}`;
const write = (path: string, text: string): Promise<{ version: number }> =>
  json('PUT', fileOf(path), { text });
const list = async (query: string): Promise<Entry[]> =>
  (await json<{ entries: Entry[] }>('GET', `${WORKSPACE}/files?limit=1000&${query}`)).entries;
const history = async (path: string): Promise<Change[]> =>
  (await json<{ changes: Change[] }>('GET', `${WORKSPACE}/file-history?path=${path}`)).changes;
const createChat = (role: string): Promise<Chat> =>
  json('POST', `${WORKSPACE}/chats`, { name: `${role} talk`, role });
const command = ({ id }: Chat, body: object): Promise<{ turnId: string }> =>
  json('POST', `${WORKSPACE}/chats/${id}`, body);
const attach = async ({ id }: Chat, lastEventId?: string, gateway = 0): Promise<ChatStream> => {
  const url = urlOf(`${WORKSPACE}/chats/${id}/events`, gateway);
  const stream = await ChatStream.open(url, { lastEventId });
  streams.push(stream);
  return stream;
};
const cli = async (...args: readonly string[]): Promise<CliRun> => runCli(stack, args);
const eventsOf = ({ sessionId }: Chat) => readEvents(stack, { stream: `session-${sessionId}` });

describe.each(ROLES)('a person who works with %s', (role) => {
  let chat: Chat;
  let turnId: string;
  /** All frames of the turn, and those after its first call, of a reader whose browser was closed. */
  let frames: ChatStream['events'];
  let resumed: { readonly after: number; readonly frames: ChatStream['events'] };
  const isOfTurn = ({ event }: ChatStream['events'][number]): boolean => event !== 'ready';
  const calls = () =>
    mock.calls.filter(({ seen }) => JSON.stringify(seen.body).includes(`folder of ${role} now`));

  beforeAll(async () => {
    await write(`system/agents/${role}.md`, `You tidy folders as ${role}.\n`);
    chat = await createChat(role);
    await write(`${role}/notes.md`, 'Buy milk.\nBuy bread.\n');
    await write(`${role}/old.md`, 'Buy paper.\n');
    await command(chat, { command: 'attach', path: `${role}/notes.md` });
    await write(`${role}/notes.md`, 'Buy milk.\nBuy bread.\nAnd tea.\n');
    const browser = await attach(chat);
    ({ turnId } = await command(chat, { command: 'message', content: `tidy the folder of ${role} now` }));
    await browser.waitFor('the first call', ({ event }) => event === 'call');
    const lastId = browser.lastId;
    const seen = browser.events.filter(isOfTurn).length;
    browser.close();
    const again = await attach(chat, lastId, 1);
    await again.done();
    const whole = await attach(chat);
    await whole.done();
    frames = whole.events.filter(isOfTurn);
    resumed = { after: seen, frames: again.events.filter(isOfTurn) };
  });

  // @shows C15
  it('1. starts a chat with the role', () => {
    expect(chat).toMatchObject({ path: `${role} talk.chat`, agentId: `agent-${role}`, is_virtual: true });
  });

  it('2. refers to a file, whose version at that time the agent sees', async () => {
    const attached = (await eventsOf(chat)).filter(({ type }) => type === 'ChatFileAttached');
    expect(attached.map(({ data }) => data['path'])).toEqual([`${role}/notes.md`]);
  });

  it('3. sees thoughts, calls and text in order, also after the browser was closed in between', () => {
    expect(resumed.frames).toEqual(frames.slice(resumed.after));
    const kinds = frames.map(({ event }) => event).filter((event) => event !== 'usage');
    const pairs = Array.from({ length: 4 }, () => ['call', 'observation']).flat();
    expect(kinds).toEqual(['accepted', 'thought', ...pairs, 'text', 'done']);
    const tools = frames.filter(({ event }) => event === 'call').map(({ data }) => data['name']);
    expect(tools).toEqual(['ls', 'read', 'write', 'rm']);
    expect(frames.at(-1)?.data).toMatchObject({ status: 'completed' });
  });

  it('3b. gave the agent its role and the file as they were', async () => {
    const [requested] = (await eventsOf(chat)).filter(({ type }) => type === 'TurnRequested');
    expect(requested?.data['role']).toMatchObject({ path: `system/agents/${role}.md` });
    if (role === 'assistant') return expect(calls()).toEqual([]);
    const [first] = calls().map(({ seen }) => JSON.stringify(seen.body));
    expect(calls()).toHaveLength(5);
    expect(calls()[0]).toMatchObject({
      format: role.startsWith('gpt') ? 'openai' : 'anthropic',
      streaming: true,
    });
    expect(first).toContain(`You tidy folders as ${role}.`);
    expect(first).toContain('Buy milk.\\nBuy bread.\\n');
    expect(first).not.toContain('And tea.');
  });

  // @shows P1
  it('4. finds the conversation in the .chat file, and the work in the files', async () => {
    const entries = await list('');
    expect(entries.find(({ path }) => path === chat.path)).toMatchObject({ is_virtual: true });
    const text = await request('GET', fileOf(chat.path));
    const steps = [`tidy the folder of ${role} now`, 'call `ls`', 'call `rm`', 'The folder is tidy.'];
    expect(steps.map((step) => text.indexOf(step))).toEqual(
      steps.map((step) => text.indexOf(step)).sort((a, b) => a - b),
    );
    expect(steps.filter((step) => !text.includes(step))).toEqual([]);
    expect((await cli('files', 'cat', chat.path)).stdout).toBe(text);
    const paths = (await list(`path=${role}`)).map(({ path }) => path);
    expect(paths).toEqual([`${role}/notes.md`, `${role}/summary.md`]);
    const [written] = await history(`${role}/summary.md`);
    expect(written?.cause).toMatchObject({ actor: `agent/agent-${role}`, turnId, sessionId: chat.sessionId });
  });
});

const runTest = (repository: string): Promise<number> =>
  new Promise((resolve) => {
    const file = join(repository, 'repo/test/slug.test.mjs');
    execFile(process.execPath, [file], { env: {} }, (error) => resolve(error ? 1 : 0));
  });
/** Returns the digest of each file below a folder, by its path. */
const readTree = async (root: string): Promise<Record<string, string>> => {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const digests = files.map(async (file) => {
    const digest = createHash('sha256')
      .update(await readFile(file))
      .digest('hex');
    return [relative(root, file), digest] as const;
  });
  return Object.fromEntries(await Promise.all(digests));
};
const exportTo = async (name: string): Promise<string> => {
  const out = join(folder, name);
  const { code, stderr } = await cli('files', 'export', '--out', out);
  expect([code, stderr]).toEqual([0, '']);
  return out;
};

/** Counts the stored contents of files. */
const countBytes = async (): Promise<number> => {
  const client = new pg.Client({ connectionString: stack.databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ count: number }>('select count(*)::int as count from file_blobs');
    return rows[0]?.count ?? 0;
  } finally {
    await client.end();
  }
};

describe('an agent with ls, read, search, edit and write', () => {
  let mended: { readonly chat: Chat; readonly before: number; readonly from: string };
  /** Exit codes of the test before and after, and the turns of the greeting and of the correction. */
  let exits: readonly number[];
  let turns: { readonly greeting: string; readonly correction: string };

  beforeAll(async () => {
    for (const [path, text] of Object.entries(REPOSITORY)) await write(path, text);
    const chat = await createChat(CODER);
    const greeting = await command(chat, { command: 'message', content: 'hello' });
    const stream = await attach(chat);
    await stream.done();
    const before = (await eventsOf(chat)).length;
    const [newest] = await history('');
    const exitBefore = await runTest(await exportTo('before'));
    const { turnId } = await command(chat, { command: 'message', content: 'correct the failing test' });
    await stream.done(2);
    exits = [exitBefore, await runTest(await exportTo('after'))];
    turns = { greeting: greeting.turnId, correction: turnId };
    mended = { chat, before, from: String(newest?.version) };
  });

  // @shows I12
  it('corrects a failing test: the diff is the expected one, and the history names the turn of each change', async () => {
    expect(exits).toEqual([1, 0]);
    expect(await request('GET', fileOf('repo/src/slug.mjs'))).toBe(MENDED);
    const turnId = turns.correction;
    const diff = await cli('files', 'diff', 'repo/src/slug.mjs', '--from', mended.from);
    const lines = [BROKEN, MENDED].map((text) => text.split('\n')[2]);
    expect(diff.stdout).toMatch(/^--- a\/repo\/src\/slug\.mjs\n\+\+\+ b\/repo\/src\/slug\.mjs\n@@ -1,/);
    expect(diff.stdout).toContain(`\n-${lines[0]}\n+${lines[1]}\n`);
    const changes = await history('repo');
    expect(changes.map(({ type, path, cause }) => [type, path, cause['turnId'] ?? null])).toEqual([
      ['written', 'repo/CHANGES.md', turnId],
      ['written', 'repo/src/slug.mjs', turnId],
      ...Object.keys(REPOSITORY)
        .map((path) => ['written', path, null])
        .reverse(),
    ]);
    expect((await cli('files', 'history', 'repo/src/slug.mjs')).stdout).toContain(`turn ${turnId}`);
    expect(turns.greeting).not.toBe(turnId);
  });

  it('has the old files in a fork and in a what-if before the change, without a copy', async () => {
    const { chat, before, from } = mended;
    const [newest] = await history('');
    const bytes = await countBytes();
    const forked = await cli('session', 'fork', chat.sessionId, '--at', String(before), '--json');
    const whatIf = await cli('session', 'whatif', chat.sessionId, '--model', 'other', '--json');
    for (const { code, stdout, stderr } of [forked, whatIf]) {
      expect([code, stderr]).toEqual([0, '']);
      const { sessionId } = JSON.parse(stdout) as { sessionId: string };
      const old = await list(`path=repo&recursive=true&session=${sessionId}`);
      expect(old.map(({ path }) => path)).toEqual(Object.keys(REPOSITORY).sort());
      const text = await request('GET', `${fileOf('repo/src/slug.mjs')}?session=${sessionId}`);
      expect(text).toBe(BROKEN);
    }
    // One fact for each tree, no byte, and no change of the workspace.
    const facts = await readEvents(stack, { type: 'FileTreeForked' });
    expect(facts.map(({ data }) => data['version'])).toEqual([Number(from), Number(from)]);
    expect(await countBytes()).toBe(bytes);
    expect((await history(''))[0]).toEqual(newest);
  });

  // @shows chats-C15
  it('is exported as a tar whose proof verifies offline, and extracts to the files of the version', async () => {
    const tar = join(folder, 'site.tar');
    await waitForRoot(stack);
    const exported = await cli('files', 'export', '--out', tar, '--proof');
    expect([exported.code, exported.stderr]).toEqual([0, '']);
    const manifest = JSON.parse(await readFile(`${tar}.json`, 'utf8')) as { files: Entry[] };
    const stored = (await list('recursive=true')).filter((entry) => !entry.is_virtual);
    expect(manifest.files).toMatchObject(stored.map(({ path, digest }) => ({ path, digest })));
    const out = join(folder, 'extracted');
    await mkdir(out);
    await promisify(execFile)('tar', ['-xf', tar, '-C', out]);
    expect(await readTree(out)).toEqual(Object.fromEntries(stored.map(({ path, digest }) => [path, digest])));

    const offline = {
      ANTIPHON_URL: 'http://127.0.0.1:9',
      ANTIPHON_DATABASE_URL: 'postgres://127.0.0.1:9/none',
    };
    const verify = () => runCli(stack, ['files', 'verify', tar], offline);
    const verified = await verify();
    expect([verified.code, verified.stderr]).toEqual([0, '']);
    expect(verified.stdout).toContain(`${stored.length} files are those of the tree`);
    const bytes = await readFile(tar);
    bytes[bytes.indexOf(MENDED)] = 'C'.charCodeAt(0);
    await writeFile(tar, bytes);
    const altered = await verify();
    expect(altered.code).not.toBe(0);
    expect(altered.stderr).toContain('repo/src/slug.mjs has other bytes or another mode');
  });

  it('leaves a log that the audit accepts, without the key of a provider', async () => {
    const audit = await cli('audit', '--live', '--json');
    const { checks, first } = JSON.parse(audit.stdout) as {
      readonly checks: { name: string; checked: number }[];
      readonly first: unknown;
    };
    expect([audit.code === 5 ? 0 : audit.code, audit.stderr, first]).toEqual([0, '', null]);
    const checkedBy = Object.fromEntries(checks.map(({ name, checked }) => [name, checked]));
    expect(checkedBy).toMatchObject({ 'chats-begin-once': 4, 'chats-have-one-session': 4 });
    for (const name of ['file-trees-stay-within-quotas', 'cited-bytes-are-stored', 'folders-equal-the-files'])
      expect([name, (checkedBy[name] ?? 0) > 0]).toEqual([name, true]);
    expect(JSON.stringify(await readEvents(stack))).not.toContain(CANARY_KEY);
  });
});
