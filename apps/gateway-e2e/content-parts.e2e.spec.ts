import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import { startMockModel, type MockModel, type MockRequest } from '@antiphon/testing/providers';
import { pdfOf, pngOf } from '@antiphon/testing/sample-files';
import { docxOf, docxOfXml, pptxOf, xlsxOf } from '@antiphon/testing/sample-office';
import type { TestStack } from '@antiphon/testing/stack';
import {
  readEvents,
  runCli,
  startStackWith,
  twoVendorConfig,
  waitForRoot,
  waitForValue,
} from './stack-under-test.js';

jest.setTimeout(120_000);

const TEXT_ONLY = `
[[agents]]
id = "reader"
workspace = "*"
name = "Reader"
provider = "openai"
model = "gpt-3.5-turbo"
`;
const VENDORS = ['claude', 'gpt'] as const;

let mock: MockModel;
let stack: TestStack;
let client: SocketClient;
let chats = 0;

beforeAll(async () => {
  mock = await startMockModel(() => ({ text: ['seen'] }));
  stack = await startStackWith(`${twoVendorConfig(mock.url)}${TEXT_ONLY}`, {}, { shareDatabase: true });
  client = await connectClient(stack.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await mock?.close();
});

const WORKSPACE = '/api/v1/workspaces/default';
const digestOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

interface Reply {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

const call = async (method: string, path: string, body?: object | Buffer): Promise<Reply> => {
  const isBytes = body instanceof Buffer;
  const type = isBytes ? 'application/octet-stream' : 'application/json';
  const response = await fetch(`${stack.gatewayUrl}${path}`, {
    method,
    ...(body === undefined ? {} : { headers: { 'content-type': type } }),
    ...(body === undefined ? {} : { body: isBytes ? new Uint8Array(body) : JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Reply['body'] };
};

const ok = async (...args: Parameters<typeof call>): Promise<Reply['body']> => {
  const { status, body } = await call(...args);
  if (status >= 300) throw new Error(`${args[0]} ${args[1]}: ${status} ${JSON.stringify(body)}`);
  return body;
};

const upload = (path: string, bytes: Buffer) =>
  ok('PUT', `${WORKSPACE}/files/${encodeURIComponent(path)}`, bytes);

const newChat = async (agent: string) => {
  const { id, sessionId } = await ok('POST', `${WORKSPACE}/chats`, { name: `parts-${++chats}`, agent });
  return { id: String(id), sessionId: String(sessionId) };
};

interface Turn {
  readonly turnId: string;
  readonly status: string;
  readonly message: { readonly text: string; readonly files?: readonly Record<string, unknown>[] };
  readonly error: { readonly code: string; readonly message: string } | null;
}

const endOf = (sessionId: string, turnId: string): Promise<Turn> =>
  waitForValue('the end of the turn', async () => {
    const { turns } = await ok('GET', `/api/v1/sessions/${sessionId}/turns`);
    return (turns as Turn[]).find(
      (turn) => turn.turnId === turnId && !['queued', 'running'].includes(turn.status),
    );
  });

const send = async (
  { id, sessionId }: { readonly id: string; readonly sessionId: string },
  content: unknown,
) => {
  const before = mock.calls.length;
  const { turnId } = await ok('POST', `${WORKSPACE}/chats/${id}`, { content });
  const turn = await endOf(sessionId, String(turnId));
  return { turn, calls: mock.calls.slice(before) };
};

/** Returns the digests of the bytes that a request of either format has, in its order. */
const sentDigests = ({ seen }: MockRequest): string[] => {
  const found: string[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const { data, url, file_data: file } = value as Record<string, unknown>;
    for (const text of [data, url, file])
      if (typeof text === 'string')
        found.push(digestOf(Buffer.from(text.replace(/^data:[^,]*,/, ''), 'base64')));
    for (const part of Object.values(value)) visit(part);
  };
  visit((seen.body as { messages: unknown }).messages);
  return found;
};

const boundOf = async (sessionId: string): Promise<number> => {
  const reserved = (await readEvents(stack, { category: 'budget' })).findLast(
    ({ type, data }) => type === 'BudgetReserved' && data['sessionId'] === sessionId,
  );
  return Number(reserved?.data['inputBound']);
};

/** Returns the version of a session after its last turn. */
const versionOf = async (sessionId: string): Promise<unknown> => {
  const { turns } = await ok('GET', `/api/v1/sessions/${sessionId}/turns`);
  return (turns as { endVersion: number }[]).at(-1)?.endVersion;
};

describe('a message of parts', () => {
  const png = pngOf(640, 480);
  const pdf = pdfOf('the tide turns at noon', 'second page');

  beforeAll(async () => {
    await upload('pictures/beach.png', png);
    await upload('papers/tides.pdf', pdf);
  });

  const parts = [
    { type: 'text', text: 'Look at this' },
    { type: 'image', path: 'pictures/beach.png' },
    { type: 'text', text: 'and read this' },
    { type: 'file', path: 'papers/tides.pdf' },
  ];

  it.each(VENDORS)('reaches %s byte for byte, in its order, and is charged by the bound', async (agent) => {
    const chat = await newChat(agent);
    const { turn, calls } = await send(chat, parts);
    expect(turn).toMatchObject({
      status: 'completed',
      message: {
        text: 'Look at this\n\nand read this',
        files: [
          { path: 'pictures/beach.png', digest: digestOf(png), at: 12 },
          { path: 'papers/tides.pdf', digest: digestOf(pdf), at: 27 },
        ],
      },
    });
    expect(calls.map(sentDigests)).toEqual([[digestOf(png), digestOf(pdf)]]);
    expect(calls[0]?.user).toContain('Look at this');
    const bound = await boundOf(chat.sessionId);
    // The bytes of their base64 are not counted as text: it is longer than the whole bound.
    expect(bound).toBeGreaterThan(350);
    const body = JSON.stringify(calls[0]?.seen.body).length;
    expect(bound).toBeLessThan(body + 8_000);
  });

  it.each(VENDORS)('is the same for an attached file in each later turn of %s', async (agent) => {
    const chat = await newChat(agent);
    for (const path of ['pictures/beach.png', 'papers/tides.pdf'])
      await ok('POST', `${WORKSPACE}/chats/${chat.id}`, { command: 'attach', path });
    for (const text of ['first', 'second']) {
      const { calls } = await send(chat, text);
      expect(calls.map(sentDigests)).toEqual([[digestOf(png), digestOf(pdf)]]);
    }
    const document = await fetch(`${stack.gatewayUrl}${WORKSPACE}/chats/${chat.id}?format=json`);
    expect(await document.json()).toMatchObject({
      attachments: [
        { path: 'pictures/beach.png', media: { mediaType: 'image/png', width: 640, height: 480 } },
        { path: 'papers/tides.pdf', media: { mediaType: 'application/pdf', pages: 2 } },
      ],
    });
  });

  it('is in a fork, and its bytes are in no event', async () => {
    const chat = await newChat('claude');
    await send(chat, parts);
    const { sessionId } = await ok('POST', `/api/v1/sessions/${chat.sessionId}/fork`, {
      atVersion: await versionOf(chat.sessionId),
    });
    const before = mock.calls.length;
    await client.stream('session.send', { sessionId, content: 'and now?' }).done();
    expect(mock.calls.slice(before).map(sentDigests)).toEqual([[digestOf(png), digestOf(pdf)]]);
    const events = JSON.stringify(await readEvents(stack, { category: 'session' }));
    expect(events).toContain(digestOf(png));
    expect(events).not.toContain(png.toString('base64').slice(0, 40));
  });

  it('is refused before the call by a model that takes no images, and says what to do', async () => {
    const chat = await newChat('reader');
    const { turn, calls } = await send(chat, parts);
    expect(calls).toEqual([]);
    expect(turn).toMatchObject({ status: 'failed', error: { code: 'MODEL.IMAGES_NOT_TAKEN' } });
    expect(turn.error?.message).toMatch(/gpt-3\.5-turbo.*takes no images.*pictures\/beach\.png.*What to do/);
    // Later turns are told of the image, and get the text of the document.
    const later = await send(chat, [{ type: 'file', path: 'papers/tides.pdf' }]);
    expect(later.turn.status).toBe('completed');
    expect(later.calls.map(sentDigests)).toEqual([[]]);
    expect(later.calls[0]?.user).toContain('the tide turns at noon');
  });

  it('refuses a damaged image, a missing file and one of another version by name', async () => {
    const chat = await newChat('claude');
    await upload('pictures/broken.png', Buffer.concat([png.subarray(0, 8), Buffer.alloc(20)]));
    await upload('papers/broken.pdf', Buffer.from('%PDF-1.7\nnothing'));
    const tryPart = (part: object) => call('POST', `${WORKSPACE}/chats/${chat.id}`, { content: [part] });
    const cases: readonly [object, number, string][] = [
      [{ type: 'image', path: 'pictures/broken.png' }, 422, 'MEDIA.DAMAGED'],
      [{ type: 'file', path: 'papers/broken.pdf' }, 422, 'MEDIA.DAMAGED'],
      [{ type: 'image', path: 'papers/tides.pdf' }, 422, 'MEDIA.NOT_AN_IMAGE'],
      [{ type: 'file', path: 'nothing.txt' }, 404, 'CHAT.FILE_NOT_FOUND'],
      [{ type: 'image', path: 'pictures/beach.png', digest: '0'.repeat(64) }, 409, 'CHAT.FILE_CHANGED'],
      [{ type: 'video', path: 'pictures/beach.png' }, 400, 'GATEWAY.INVALID_BODY'],
    ];
    for (const [part, status, code] of cases)
      expect([part, await tryPart(part)]).toMatchObject([part, { status, body: { code } }]);
  });

  it('loses its bytes by an erasure: later calls have a note, and replay and audit accept the log', async () => {
    const [photo, paper] = [pngOf(64, 64, 7), pdfOf('a secret of the sea')];
    await upload('private/photo.png', photo);
    await upload('private/paper.pdf', paper);
    const chat = await newChat('claude');
    const sent = await send(chat, [
      { type: 'text', text: 'keep these' },
      { type: 'image', path: 'private/photo.png' },
      { type: 'file', path: 'private/paper.pdf' },
    ]);
    expect(sent.calls.map(sentDigests)).toEqual([[digestOf(photo), digestOf(paper)]]);
    for (const path of ['private/photo.png', 'private/paper.pdf'])
      await ok('POST', `${WORKSPACE}/file-erasures`, { path, reason: 'personal' });
    const { turn, calls } = await send(chat, 'and now?');
    expect(turn.status).toBe('completed');
    expect(calls.map(sentDigests)).toEqual([[]]);
    const body = JSON.stringify(calls[0]?.seen.body);
    expect(body.match(/the content of this file was erased/g)).toHaveLength(2);
    await waitForRoot(stack);
    const replay = await runCli(stack, ['session', 'replay', chat.sessionId, '--strict']);
    expect([replay.code, replay.stderr]).toEqual([0, '']);
    const exported = await runCli(stack, ['session', 'export', chat.sessionId]);
    expect(exported.stdout).toContain(digestOf(photo));
    const audit = await runCli(stack, ['audit']);
    expect([0, 5]).toContain(audit.code);
  });
});

describe('an office file', () => {
  const readContext = async (sessionId: string, turnId: string) =>
    (await ok('GET', `/api/v1/sessions/${sessionId}/turns/${turnId}/context`))['files'];

  it.each(VENDORS)('reaches %s as its text, attached or in a message', async (agent) => {
    await upload('office/plan.docx', docxOf('The ferry leaves at dawn.', 'Bring the charts.'));
    await upload(
      'office/tides.xlsx',
      xlsxOf({
        Tides: [
          ['port', 'height'],
          ['Brest', 7.25],
        ],
      }),
    );
    await upload('office/talk.pptx', pptxOf('Opening words', 'Closing words'));
    const chat = await newChat(agent);
    await ok('POST', `${WORKSPACE}/chats/${chat.id}`, { command: 'attach', path: 'office/plan.docx' });
    const { turn, calls } = await send(chat, [
      { type: 'text', text: 'Compare these' },
      { type: 'file', path: 'office/tides.xlsx' },
      { type: 'file', path: 'office/talk.pptx' },
    ]);
    expect([turn.status, calls.map(sentDigests)]).toEqual(['completed', [[]]]);
    const { seen } = calls[0] ?? {};
    const body = JSON.stringify(seen?.body);
    for (const text of ['The ferry leaves at dawn.', 'Brest\t7.25', 'Closing words'])
      expect(body).toContain(JSON.stringify(text).slice(1, -1));
    expect(await readContext(chat.sessionId, turn.turnId)).toMatchObject(
      ['office/plan.docx', 'office/tides.xlsx', 'office/talk.pptx'].map((path) => ({
        ...{ path, sentAs: 'text', isCut: false, tokens: expect.any(Number) },
      })),
    );
  });

  it('is refused by name, with its reason, if it is damaged, encrypted or too large unpacked', async () => {
    const chat = await newChat('claude');
    const whole = docxOf('a text');
    const container = Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.alloc(2_000)]);
    const cases: readonly [string, Buffer, string, RegExp][] = [
      ['office/cut.docx', whole.subarray(0, 200), 'MEDIA.DAMAGED', /damaged/],
      ['office/locked.docx', container, 'MEDIA.DAMAGED', /password/],
      ['office/old.doc', container, 'MEDIA.DAMAGED', /\.docx/],
      ['office/bomb.docx', docxOfXml(' '.repeat(80 * 1_024 * 1_024)), 'MEDIA.TOO_LARGE', /unpacked/],
    ];
    for (const [path, bytes, code, message] of cases) {
      await upload(path, bytes);
      const { status, body } = await call('POST', `${WORKSPACE}/chats/${chat.id}`, {
        command: 'attach',
        path,
      });
      expect([path, status, body]).toMatchObject([
        path,
        422,
        { code, detail: expect.stringMatching(message) },
      ]);
    }
    // Another damaged archive is a file without text, as before.
    await upload('office/data.zip', whole.subarray(0, 200));
    await ok('POST', `${WORKSPACE}/chats/${chat.id}`, { command: 'attach', path: 'office/data.zip' });
  });
});

interface ContextFile {
  readonly path: string;
  readonly tokens: number;
  readonly wholeTokens: number;
  readonly isCut: boolean;
  readonly sentAs: string;
}

const filesInContext = async (sessionId: string, turnId: string): Promise<readonly ContextFile[]> => {
  const context = await ok('GET', `/api/v1/sessions/${sessionId}/turns/${turnId}/context`);
  return context['files'] as ContextFile[];
};

describe('a context by the window of its model', () => {
  /** A text of some 5,000 tokens, each line with its number. */
  const lines = (count: number): string =>
    Array.from({ length: count }, (_, n) => `line ${n + 1} of the log of the tides`).join('\n');

  it.each(VENDORS)('has an attached file of 5,000 tokens whole at %s, and says so', async (agent) => {
    const text = lines(600);
    expect(text.length).toBeGreaterThan(19_000);
    await upload('notes/long.md', Buffer.from(text));
    const chat = await newChat(agent);
    await ok('POST', `${WORKSPACE}/chats/${chat.id}`, { command: 'attach', path: 'notes/long.md' });
    const { turn, calls } = await send(chat, 'read it');
    expect(JSON.stringify(calls[0]?.seen.body)).toContain('line 600 of the log');
    const [file] = await filesInContext(chat.sessionId, turn.turnId);
    expect(file).toMatchObject({ path: 'notes/long.md', isCut: false, sentAs: 'text' });
    expect(file?.tokens).toBe(file?.wholeTokens);
  });

  it('has a part of a larger file, and says how much', async () => {
    await upload('notes/huge.md', Buffer.from(lines(20_000)));
    const chat = await newChat('claude');
    const { turn, calls } = await send(chat, [{ type: 'file', path: 'notes/huge.md' }]);
    expect(calls[0]?.user).toMatch(/\[cut: lines 1 to \d+ of 20000 lines/);
    const [file] = await filesInContext(chat.sessionId, turn.turnId);
    expect(file).toMatchObject({ path: 'notes/huge.md', isCut: true, sentAs: 'text' });
    expect(file?.tokens).toBeGreaterThan(10_000);
    expect(file?.wholeTokens).toBeGreaterThan(2 * (file?.tokens ?? 0));
  });

  it('and the formats that the model takes are in the view of an agent', async () => {
    const inputsOf = async (id: string) => {
      const { contextTokens, inputs } = await ok('GET', `/api/v1/agents/${id}`);
      return { contextTokens, inputs };
    };
    expect(await inputsOf('claude')).toEqual({
      contextTokens: 48_000,
      inputs: ['text', 'image', 'document'],
    });
    expect(await inputsOf('reader')).toEqual({ contextTokens: 8_192, inputs: ['text'] });
  });
});
