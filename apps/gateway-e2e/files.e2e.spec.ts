import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createClient } from '@antiphon/client';
import type { TestStack } from '@antiphon/testing/stack';
import { startQuickStack } from './stack-under-test.js';

jest.setTimeout(60_000);

const MAX_FILE_BYTES = 3_000_000;
const CONFIG = `
[gateway]
host = "127.0.0.1"
port = 0

[files]
max_file_bytes = ${MAX_FILE_BYTES}

[[providers]]
name = "scripted"
kind = "scripted"

[[agents]]
id = "main"
provider = "scripted"
`;

let stack: TestStack;
beforeAll(async () => {
  stack = await startQuickStack(CONFIG);
}, 60_000);
afterAll(() => stack?.stop());

const urlOf = (path: string): string => `${stack.gatewayUrl}${path}`;
const FILES = '/api/v1/workspaces/default/files';
const UPLOAD = { 'content-type': 'application/octet-stream' };

interface Reply {
  readonly status: number;
  readonly body: {
    readonly code?: string;
    readonly files?: readonly { readonly digest: string }[];
    readonly data?: Readonly<Record<string, unknown>>;
  };
}

const reply = async (response: Response): Promise<Reply> => ({
  status: response.status,
  body: (await response.json()) as Reply['body'],
});
const put = async (path: string, bytes: Uint8Array<ArrayBuffer>, query = ''): Promise<Reply> =>
  reply(await fetch(`${urlOf(FILES)}/${path}${query}`, { method: 'PUT', headers: UPLOAD, body: bytes }));

/** Sends the head of an upload and none of its bytes, and returns the response. */
const putHeadOnly = (path: string, size: number): Promise<{ status: number; text: string }> =>
  new Promise((resolve, reject) => {
    const headers = { ...UPLOAD, 'content-length': String(size) };
    const sent = httpRequest(`${urlOf(FILES)}/${path}`, { method: 'PUT', headers }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
      response.on('end', () => {
        sent.destroy();
        resolve({ status: response.statusCode ?? 0, text });
      });
    });
    sent.on('error', reject);
    sent.flushHeaders();
  });

/** Sends an upload without its length. With `isEnded` false its end never comes. */
const putChunks = (
  path: string,
  chunks: readonly Uint8Array[],
  isEnded = true,
): Promise<{ status: number; text: string }> =>
  new Promise((resolve, reject) => {
    const sent = httpRequest(`${urlOf(FILES)}/${path}`, { method: 'PUT', headers: UPLOAD }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
      response.on('end', () => {
        sent.destroy();
        resolve({ status: response.statusCode ?? 0, text });
      });
    });
    sent.on('error', reject);
    for (const chunk of chunks) sent.write(chunk);
    if (isEnded) sent.end();
  });

describe('An upload', () => {
  it('of over 1 MiB is stored and read byte by byte, at a path with slashes', async () => {
    const bytes = new Uint8Array(randomBytes(2_500_000));
    const digest = createHash('sha256').update(bytes).digest('hex');
    const written = await put('data/2026/noise.bin', bytes, '?expect=none');
    expect(written).toMatchObject({ status: 200, body: { files: [{ digest, size: bytes.byteLength }] } });
    for (const path of ['data/2026/noise.bin', 'data%2F2026%2Fnoise.bin']) {
      const response = await fetch(`${urlOf(FILES)}/${path}`);
      expect(response.headers.get('etag')).toBe(`"${digest}"`);
      expect(Buffer.compare(Buffer.from(await response.arrayBuffer()), bytes)).toBe(0);
    }
    expect(await put('data/2026/noise.bin', bytes, '?expect=none')).toMatchObject({
      ...{ status: 409, body: { code: 'FILE.EXISTS' } },
    });
  });

  it('of a file that changed since is refused, and the file stays', async () => {
    const [path, text] = ['stale/notes.txt', (value: string) => new TextEncoder().encode(value)];
    const first = await put(path, text('one'));
    const [{ digest } = { digest: '' }] = first.body.files ?? [];
    expect((await put(path, text('two'), `?expect=${digest}`)).status).toBe(200);
    expect(await put(path, text('three'), `?expect=${digest}`)).toMatchObject({
      ...{ status: 409, body: { code: 'FILE.STALE' } },
    });
    const json = { 'content-type': 'application/json' };
    const body = JSON.stringify({ text: 'three', expect: digest });
    const changed = await fetch(`${urlOf(FILES)}/${path}`, { method: 'PUT', headers: json, body });
    expect(await reply(changed)).toMatchObject({ status: 409, body: { code: 'FILE.STALE' } });
    const removal = await fetch(`${urlOf(FILES)}/${path}?expect=${digest}`, { method: 'DELETE' });
    expect(await reply(removal)).toMatchObject({ status: 409, body: { code: 'FILE.STALE' } });
    expect(await (await fetch(`${urlOf(FILES)}/${path}`)).text()).toBe('two');
    expect((await fetch(`${urlOf(FILES)}/${path}`, { method: 'DELETE' })).status).toBe(200);
  });

  // @shows chats-C8
  it('that is stale gets what changed since as a diff of bounded size, and none of binary bytes', async () => {
    const lines = (value: string): Uint8Array<ArrayBuffer> =>
      new TextEncoder().encode(`one\ntwo\nthree\n${value}\n`);
    const versions = async (path: string, ...bytes: Uint8Array<ArrayBuffer>[]): Promise<string[]> => {
      const digests: string[] = [];
      for (const version of bytes) digests.push((await put(path, version)).body.files?.[0]?.digest ?? '');
      return digests;
    };
    const path = 'stale/diff.txt';
    const [expected, digest] = await versions(path, lines('four'), lines('4'));
    const data = { path, expected, digest, diff: '@@ -1,4 +1,4 @@\n one\n two\n three\n-four\n+4' };
    const json = { 'content-type': 'application/json' };
    const body = JSON.stringify({ text: 'mine', expect: expected });
    const refused = await Promise.all([
      put(path, lines('mine'), `?expect=${expected}`),
      fetch(`${urlOf(FILES)}/${path}`, { method: 'PUT', headers: json, body }).then(reply),
      fetch(`${urlOf(FILES)}/${path}?expect=${expected}`, { method: 'DELETE' }).then(reply),
      fetch(urlOf(FILES).replace(/files$/, 'file-changes'), {
        ...{ method: 'POST', headers: json },
        body: JSON.stringify({ changes: [{ op: 'delete', path, expect: expected }] }),
      }).then(reply),
    ]);
    for (const { status, body: problem } of refused) expect([status, problem.data]).toEqual([409, data]);

    const many = (word: string) => lines(`${word} ${'x'.repeat(1_000)}\n`.repeat(400));
    const [long] = await versions('stale/long.txt', many('old'), many('new'));
    const bounded = (await put('stale/long.txt', lines('mine'), `?expect=${long}`)).body.data?.['diff'];
    expect(String(bounded)).toMatch(/^@@ [^]*more lines$/);
    expect(String(bounded).length).toBeLessThan(70_000);

    const binary = (value: number): Uint8Array<ArrayBuffer> => new Uint8Array([0, value]);
    const [old, now] = await versions('stale/binary.bin', binary(1), binary(2));
    expect((await put('stale/binary.bin', binary(3), `?expect=${old}`)).body.data).toEqual({
      ...{ path: 'stale/binary.bin', expected: old, digest: now },
    });

    // A key that may only write is not shown what the file has.
    const key = await fetch(urlOf('/api/v1/keys'), {
      ...{ method: 'POST', headers: json },
      body: JSON.stringify({ name: 'writer', role: 'member', scopes: ['files:write'] }),
    });
    const { token } = (await key.json()) as { token: string };
    const authorized = { ...json, authorization: `Bearer ${token}` };
    const blind = await fetch(`${urlOf(FILES)}/${path}`, { method: 'PUT', headers: authorized, body });
    const hidden = await reply(blind);
    expect([hidden.status, hidden.body.data]).toEqual([409, { path, expected, digest }]);
    expect(await (await fetch(`${urlOf(FILES)}/${path}`)).text()).toBe('one\ntwo\nthree\n4\n');
  });

  // @shows chats-C15
  it('is refused before a byte of it is read, if it is too large or its path is not free', async () => {
    const tooLarge = await putHeadOnly('large.bin', MAX_FILE_BYTES + 1);
    expect([tooLarge.status, tooLarge.text]).toEqual([429, expect.stringContaining('FILE.QUOTA')]);
    await put('taken/file.txt', new Uint8Array(3));
    const folder = await putHeadOnly('taken', 3);
    expect([folder.status, folder.text]).toEqual([422, expect.stringContaining('FILE.IS_FOLDER')]);
    const outside = await putHeadOnly('%2e%2e%2fetc%2fpasswd', 3);
    expect([outside.status, outside.text]).toEqual([400, expect.stringContaining('FILE.INVALID_PATH')]);
  });

  it('without a length is refused at the bound, while its end is still to come', async () => {
    const path = 'endless.bin';
    const within = await putChunks(path, [new Uint8Array(MAX_FILE_BYTES)]);
    expect(within).toMatchObject({ status: 200 });
    const response = await putChunks('more.bin', [new Uint8Array(MAX_FILE_BYTES), new Uint8Array(1)], false);
    expect([response.status, response.text]).toEqual([429, expect.stringContaining('FILE.QUOTA')]);
    expect((await fetch(`${urlOf(FILES)}/more.bin`)).status).toBe(404);
    expect((await fetch(`${urlOf(FILES)}/${path}`, { method: 'DELETE' })).status).toBe(200);
  });

  it('to a route for JSON is refused', async () => {
    const url = `${urlOf('')}/api/v1/workspaces/default/file-changes`;
    const response = await fetch(url, { method: 'POST', headers: UPLOAD, body: new Uint8Array(10) });
    expect(response.status).toBe(415);
  });

  it('goes through the client library, with its options', async () => {
    const client = createClient({ url: urlOf('') });
    const upload = new Uint8Array(1_200_000).fill(65);
    const params = { id: 'default', path: 'from/client.txt' };
    const written = await client.http.writeFile({ params, query: { executable: 'true' }, upload });
    expect(written.files).toHaveLength(1);
    const listed = await client.http.listFiles({ params: { id: 'default' }, query: { path: 'from' } });
    expect(listed.entries).toMatchObject([{ path: 'from/client.txt', size: 1_200_000, mode: 0o755 }]);
    client.close();
  });
});

describe('The file of a chat', () => {
  const json = { 'content-type': 'application/json' };

  it('is listed and read as other files, and refuses every change', async () => {
    const body = JSON.stringify({ name: 'talk' });
    const chats = urlOf('/api/v1/workspaces/default/chats');
    expect((await fetch(chats, { method: 'POST', headers: json, body })).status).toBe(201);
    const url = `${urlOf(FILES)}/talk.chat`;
    const listed = (await (await fetch(urlOf(FILES))).json()) as { entries: { path: string }[] };
    expect(listed.entries).toContainEqual(
      expect.objectContaining({ path: 'talk.chat', is_virtual: true, digest: null }),
    );
    expect(await (await fetch(url)).text()).toMatch(/^# talk\n/);
    const change = (...changes: object[]): Promise<Response> =>
      fetch(urlOf(FILES).replace(/files$/, 'file-changes'), {
        ...{ method: 'POST', headers: json, body: JSON.stringify({ changes }) },
      });
    const refused = await Promise.all([
      fetch(url, { method: 'DELETE' }),
      fetch(url, { method: 'PUT', headers: UPLOAD, body: new Uint8Array(3) }),
      fetch(url, { method: 'PUT', headers: json, body: '{"text":"x"}' }),
      change({ op: 'move', path: 'talk.chat', to: 'talk.md' }),
      change({ op: 'move', path: 'taken/file.txt', to: 'other.chat' }),
      change({ op: 'delete', path: 'talk.chat' }),
    ]);
    const replies = await Promise.all(refused.map(reply));
    expect(replies.map(({ status, body: { code } }) => `${status} ${code ?? ''}`)).toEqual(
      Array(6).fill('422 FILE.VIRTUAL'),
    );
    expect(await (await fetch(url)).text()).toMatch(/^# talk\n/);
    expect((await fetch(`${chats}/talk`, { method: 'DELETE' })).status).toBe(200);
  });
});

describe('A path of the hostile corpus', () => {
  const corpus = join(import.meta.dirname, '../../libs/files/features/disk/fixtures/path-corpus.jsonl');
  const paths = readFileSync(corpus, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { id: string; input: unknown })
    .flatMap(({ id, input }) => (typeof input === 'string' ? [[id, input] as const] : []));

  // @shows chats-C11
  it.each(paths)('%s is refused by every route of files', async (_id, path) => {
    const url = urlOf(FILES);
    const encoded = encodeURIComponent(path);
    const json = { 'content-type': 'application/json' };
    const changes = { changes: [{ op: 'move', path: 'taken.txt', to: path }] };
    const responses = await Promise.all([
      fetch(`${url}/${encoded}`),
      // The folder `.` is the root.
      ...(path === '.' ? [] : [fetch(`${url}?path=${encoded}`)]),
      fetch(`${url}/${encoded}`, { method: 'PUT', headers: UPLOAD, body: new Uint8Array(3) }),
      fetch(`${url}/${encoded}`, { method: 'PUT', headers: json, body: '{"text":"x"}' }),
      fetch(`${url}/${encoded}`, { method: 'DELETE' }),
      fetch(url.replace(/files$/, 'file-changes'), {
        ...{ method: 'POST', headers: json, body: JSON.stringify(changes) },
      }),
    ]);
    const replies = await Promise.all(responses.map(reply));
    for (const { status, body } of replies)
      expect([status, body.code]).toEqual([
        400,
        expect.stringMatching(/^(FILE.INVALID_PATH|GATEWAY.INVALID_(BODY|QUERY))$/),
      ]);
  });

  it('is no file afterwards', async () => {
    const { entries } = (await (await fetch(`${urlOf(FILES)}?recursive=true`)).json()) as {
      entries: { path: string }[];
    };
    expect(entries.map(({ path }) => path)).toEqual([
      'data/2026/noise.bin',
      'from/client.txt',
      'stale/binary.bin',
      'stale/diff.txt',
      'stale/long.txt',
      'taken/file.txt',
    ]);
  });
});
