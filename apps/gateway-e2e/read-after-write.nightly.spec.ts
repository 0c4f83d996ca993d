import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { IssuedKey } from '@antiphon/contracts/keys';
import type { TestStack } from '@antiphon/testing/stack';
import { createApiCaller, scriptedConfig, startStackWith } from './stack-under-test.js';

jest.setTimeout(180_000);

const CONFIG = scriptedConfig(
  `
[[agents]]
id = "desk"
provider = "scripted"
model = "scripted-1"
`,
);

/** A kind of thing: how one is made, and the list that has it. */
interface Kind {
  readonly make: readonly [method: string, path: (name: string) => string, body: (name: string) => unknown];
  readonly list: string;
  /** Returns the text by which the list shows a thing: its name, or the id in the reply. */
  readonly shownAs: (name: string, reply: Record<string, unknown>) => string;
}

const byName = (name: string): string => JSON.stringify(name);
const byId = (field: string) => (_name: string, reply: Record<string, unknown>) =>
  JSON.stringify(reply[field]);

const KINDS: Readonly<Record<string, Kind>> = {
  agents: {
    make: ['POST', () => '/agents', (id) => ({ id, name: id, provider: 'scripted', model: 'scripted-1' })],
    list: '/agents?limit=200',
    shownAs: byName,
  },
  tasks: {
    make: ['POST', () => '/tasks', (prompt) => ({ prompt, capabilities: ['none-has-it'] })],
    list: '/tasks?limit=200',
    shownAs: byId('id'),
  },
  workflows: {
    make: [
      'POST',
      () => '/workflows',
      (name) => ({ name, nodes: [{ id: 'only', agent: 'desk', prompt: 'hello' }] }),
    ],
    list: '/workflows?limit=200',
    shownAs: byName,
  },
  chats: {
    make: ['POST', () => '/workspaces/default/chats', (name) => ({ name, agent: 'desk' })],
    list: '/workspaces/default/chats?limit=200',
    shownAs: byName,
  },
  sessions: {
    make: ['POST', () => '/workspaces/default/chats', (name) => ({ name, agent: 'desk' })],
    list: '/sessions?limit=200',
    shownAs: byId('sessionId'),
  },
  files: {
    make: ['PUT', (name) => `/workspaces/default/files/notes/${name}.md`, () => ({ text: 'text' })],
    list: '/workspaces/default/files?path=notes',
    shownAs: (name) => `${name}.md`,
  },
  keys: {
    make: ['POST', () => '/keys', (name) => ({ name, role: 'viewer' })],
    list: '/keys?limit=200',
    shownAs: byName,
  },
  messages: {
    make: [
      'POST',
      () => '/messages',
      (text) => ({ to: { agent: 'desk' }, type: 'AgentSpoke', content: { text } }),
    ],
    list: '/agents/desk/messages?limit=200',
    shownAs: byName,
  },
};

/** Number of writes of each kind: 1,000 together. */
const ROUNDS = 125;

let stack: TestStack;
let gateways: readonly string[];
let admin: string;

beforeAll(async () => {
  stack = await startStackWith(CONFIG, { gateway: 2 }, { shareDatabase: true });
  const { urls, adminKeyFile } = stack.stackJson();
  gateways = urls.gateways;
  admin = readFileSync(adminKeyFile ?? '', 'utf8').trim();
});
afterAll(() => stack?.stop());

const callAt = (index: number) => createApiCaller(() => gateways[index % gateways.length] as string);

/** Creates a thing through one gateway. Returns the position of the reply and how a list shows it. */
const makeAt = async (index: number, token: string, kind: Kind, name: string) => {
  const [method, path, body] = kind.make;
  const response = await fetch(`${gateways[index % 2]}/api/v1${path(name)}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body(name)),
  });
  const reply = (await response.json()) as Record<string, unknown>;
  if (!response.ok) throw new Error(`${path(name)}: ${JSON.stringify(reply)}`);
  return { position: Number(response.headers.get('antiphon-position')), shown: kind.shownAs(name, reply) };
};

/** Returns the whole list as text, page after page. */
const listAt = async (index: number, token: string, path: string): Promise<string> => {
  const pages: string[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const next = cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const { status, body } = await callAt(index)<{ nextCursor?: string | null }>(token, 'GET', path + next);
    if (status !== 200) throw new Error(`${path}: ${JSON.stringify(body)}`);
    pages.push(JSON.stringify(body));
    cursor = body.nextCursor ?? null;
  }
  return pages.join('\n');
};

const createKey = async (name: string): Promise<string> => {
  const { body } = await callAt(0)<IssuedKey>(admin, 'POST', '/keys', { name, role: 'admin' });
  return body.token ?? '';
};

describe('a list that is read right after a write', () => {
  /** Writers at the same time with the keys of `keyOf`. Returns the writes that a list lacked. */
  const writeAndList = async (label: string, keyOf: (what: string) => Promise<string>) => {
    const missed: string[] = [];
    let written = 0;
    const work = Object.entries(KINDS).map(async ([what, kind]) => {
      const token = await keyOf(what);
      for (let round = 0; round < ROUNDS; round += 1) {
        const name = `${label}-${what}-${round}`;
        const { shown } = await makeAt(round, token, kind, name);
        written += 1;
        const readAt = performance.now();
        if ((await listAt(round + 1, token, kind.list)).includes(shown)) continue;
        missed.push(`${name}: read in ${Math.round(performance.now() - readAt)} ms`);
      }
    });
    await Promise.all(work);
    return { written, missed };
  };

  it('contains the write at the other gateway, 1,000 times of 1,000', async () => {
    const result = await writeAndList('own', (what) => createKey(`writer-${what}`));
    expect(result).toEqual({ written: 1_000, missed: [] });
  });

  it('contains the write while eight programs write with one key, 1,000 times of 1,000', async () => {
    const key = await createKey('shared');
    expect(await writeAndList('one', () => Promise.resolve(key))).toEqual({ written: 1_000, missed: [] });
  });

  it('contains the write of another key with `?after=`', async () => {
    const [writer, reader] = [await createKey('one'), await createKey('two')];
    for (let round = 0; round < 25; round += 1)
      for (const [what, kind] of Object.entries(KINDS)) {
        const { position, shown } = await makeAt(round, writer, kind, `other-${what}-${round}`);
        expect(position).toBeGreaterThan(0);
        const separator = kind.list.includes('?') ? '&' : '?';
        const list = await listAt(round + 1, reader, `${kind.list}${separator}after=${position}`);
        expect([what, list.includes(shown)]).toEqual([what, true]);
      }
  });

  it('refuses a position that the log has not reached, and one that is no number', async () => {
    const ahead = await callAt(0)(admin, 'GET', '/tasks?after=999999999');
    expect([ahead.status, ahead.body.code]).toEqual([422, 'LOG.POSITION_AHEAD']);
    const text = await callAt(0)(admin, 'GET', '/tasks?after=now');
    expect([text.status, text.body.code]).toEqual([400, 'GATEWAY.INVALID_QUERY']);
  });
});
