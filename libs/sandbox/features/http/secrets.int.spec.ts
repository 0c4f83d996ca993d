import { randomUUID } from 'node:crypto';
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { cells, startSandbox } from '../testing/sandbox.fixture.spec.js';
import type { TestSandbox } from '../testing/sandbox.fixture.spec.js';
import type { DialTarget, EgressPorts } from './fetch-page.js';
import type { ReadSecrets } from './request-secrets.js';

jest.setTimeout(60_000);

/** With characters that each encoding changes. */
const SECRET = 'canary-7d0e5a1c&9b3f"4e62/+=';
const BASE64 = Buffer.from(SECRET).toString('base64');
const ENCODED = [SECRET, encodeURIComponent(SECRET), BASE64, Buffer.from(SECRET).toString('hex')];
const HOSTS = ['api.example.com', 'other.example.com'];
const MARK = '{secret:weather}';

let server: Server;
let respond: RequestListener;
let asked: { readonly request: IncomingMessage; readonly body: string }[];
let dialled: DialTarget[];
let wanted: (readonly string[])[];
let readSecrets: ReadSecrets;
let box: TestSandbox;

const egress: EgressPorts = {
  resolve: async () => ['93.184.216.34'],
  dial: (target) => {
    dialled.push(target);
    return connect((server.address() as AddressInfo).port, '127.0.0.1');
  },
};

beforeAll(async () => {
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => void chunks.push(chunk));
    request.on('end', () => {
      asked.push({ request, body: Buffer.concat(chunks).toString() });
      respond(request, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const capabilities = [...HOSTS.map((host) => `http:${host}`), 'http:path.example.com/v1', 'secret:weather'];
  const more = { readSecrets: ((...given) => readSecrets(...given)) as ReadSecrets, egress };
  box = await startSandbox(['requests', 'requests-with-body'], { capabilities, timeoutMs: 5_000 }, more);
});
beforeEach(() => {
  [asked, dialled, wanted] = [[], [], []];
  readSecrets = async (_workspace, names) => {
    wanted.push(names);
    return Object.fromEntries(names.map((name) => [name, name === 'weather' ? SECRET : null]));
  };
  respond = (_request, response) => void response.setHeader('content-type', 'text/plain').end('hello');
});
afterEach(() => server.closeAllConnections());
afterAll(async () => {
  await box.close();
  server.close();
});

interface Written {
  readonly url?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The module sends its input as its request; the other one has it as its body too. */
const send = (written: Written & { readonly more?: string }, name = 'requests') =>
  box.call(name, { url: 'https://api.example.com/', ...written });
const denied = (reason: string) => ({
  outcome: 'failed',
  code: 'TOOL.DENIED',
  message: expect.stringContaining(reason),
});
const echo = (text: string): void => {
  respond = (_request, response) => void response.setHeader('content-type', 'text/plain').end(text);
};
const found = (text: string): string[] => ENCODED.filter((encoded) => text.includes(encoded));

describe('a secret of a plug-in', () => {
  it('is inserted into a header, the URL and the body, for the granted host', async () => {
    const written = { url: `https://api.example.com/a/${MARK}?key=${MARK}`, method: 'POST' };
    const headers = {
      authorization: `Bearer ${MARK}`,
      'x-api-key': MARK,
      'content-type': 'application/json',
    };
    const sent = await send({ ...written, headers, more: MARK }, 'requests-with-body');
    expect(sent).toMatchObject({ content: 'hello' });
    const [{ request, body } = { request: null, body: '' }] = asked;
    expect(request?.url).toBe(`/a/${encodeURIComponent(SECRET)}?key=${encodeURIComponent(SECRET)}`);
    expect(request?.headers).toMatchObject({ authorization: `Bearer ${SECRET}`, 'x-api-key': SECRET });
    expect([request?.method, body]).toEqual(['POST', expect.stringContaining(`"more":"${SECRET}"`)]);
    expect(wanted).toEqual([['weather']]);
  });

  it('is removed from a response that repeats it in any known encoding', async () => {
    const html = SECRET.replace('&', '&amp;').replace('"', '&quot;');
    const all = [...ENCODED, JSON.stringify(SECRET).slice(1, -1), BASE64.replace(/=+$/, ''), html];
    echo(all.join(' | '));
    const { content } = (await send({ headers: { authorization: MARK } })) as { content: string };
    expect(content).toBe(all.map(() => '[redacted]').join(' | '));
  });

  it('is in no memory of the cell, no log line and no result', async () => {
    echo(`before ${ENCODED.join(' ')} after`);
    const canary = `marker-${randomUUID()}`;
    const result = await send({ headers: { authorization: `${MARK} ${canary}` } });
    const dumps = cells().map(dump);
    // The dump has what the guest wrote, so it would have the secret.
    expect(dumps.some((memory) => memory.includes(canary))).toBe(true);
    expect(dumps.flatMap((memory) => ENCODED.filter((encoded) => memory.includes(encoded)))).toEqual([]);
    expect(found(JSON.stringify([result, box.log]))).toEqual([]);
  });

  it('does not appear in the error of a request that fails', async () => {
    for (const type of [`image/${SECRET}`, `text/plain${SECRET}`]) {
      respond = (_request, response) => void response.setHeader('content-type', type).end('x');
      const result = await send({ headers: { authorization: MARK } });
      expect(result).toMatchObject({ content: expect.stringContaining('[redacted]') });
      expect(found(JSON.stringify([result, box.log]))).toEqual([]);
    }
  });

  it('does not appear in the refusal of a redirect that has it', async () => {
    respond = (_request, response) =>
      void response.writeHead(302, { location: `https://canary-7d0e5a1c.evil.example/${SECRET}` }).end();
    const result = await send({ headers: { authorization: MARK } });
    expect(result).toMatchObject(denied('not granted'));
    expect(found(JSON.stringify([result, box.log]))).toEqual([]);
    expect(dialled).toHaveLength(1);
  });

  it('goes to no other host by a redirect, and no placeholder of a redirect is filled', async () => {
    respond = ({ headers }, response) => {
      const isFirst = headers.host === 'api.example.com';
      const location = `https://other.example.com/?again=${MARK}`;
      if (isFirst) response.writeHead(302, { location }).end();
      else response.setHeader('content-type', 'text/plain').end('there');
    };
    await send({ headers: { authorization: `Bearer ${MARK}`, accept: 'text/plain' } });
    expect(asked.map(({ request }) => request.headers.authorization)).toEqual([
      `Bearer ${SECRET}`,
      undefined,
    ]);
    expect(found(asked[1]?.request.url ?? '')).toEqual([]);
    expect(asked[1]?.request.headers.accept).toBe('text/plain');
  });

  it.each([
    ['a host that is not granted', { url: `https://evil.example/?k=${MARK}` }, 'not granted'],
    ['a host name made of it', { url: `https://${MARK}.api.example.com/` }, 'not a URL'],
    ['credentials of the URL', { url: `https://u:${MARK}@api.example.com/` }, 'credentials'],
    ['a header about the sender', { headers: { 'x-forwarded-for': MARK } }, 'may not set the header'],
    ['the header of the host', { headers: { host: MARK } }, 'may not set the header'],
    ['another method', { method: 'TRACE' }, 'the method is not one of'],
    [
      'a secret that is not granted',
      { headers: { authorization: '{secret:other}' } },
      'secret:other is not granted',
    ],
  ])('is refused for %s before it is read', async (_case, written, reason) => {
    expect(await send(written)).toMatchObject(denied(reason));
    expect([wanted, dialled]).toEqual([[], []]);
  });

  it('that is not stored is refused with the command that stores it', async () => {
    readSecrets = async () => ({ weather: null });
    expect(await send({ headers: { authorization: MARK } })).toMatchObject(
      denied(
        'the workspace has no secret "weather". What to do: store it with "antiphon secret set weather --stdin"',
      ),
    );
    expect(dialled).toEqual([]);
  });

  it('that cannot be read is a failure of the request', async () => {
    readSecrets = () => Promise.reject(new Error('no agent service'));
    expect(await send({ headers: { authorization: MARK } })).toMatchObject({
      content: expect.stringContaining('a secret could not be read'),
    });
    expect(dialled).toEqual([]);
  });

  it('with dots in it leaves no granted path', async () => {
    readSecrets = async () => ({ weather: '../../../admin' });
    const url = `https://path.example.com/v1/${MARK}`;
    expect(await send({ url })).toMatchObject(denied('not below one that is granted'));
    expect(dialled).toEqual([]);
  });

  it('is permitted by the caller before its request leaves', async () => {
    const before = box.permit.asked;
    box.permit.isGranted = false;
    const attemptId = randomUUID();
    await box.call('requests', { url: 'https://api.example.com/', method: 'POST' }, { attemptId });
    box.permit.isGranted = true;
    expect([asked.length, box.permit.asked]).toEqual([0, before + 1]);
  });
});

/** Reads the writable memory of a process as one byte a character. */
const dump = (pid: number): string => {
  const file = openSync(`/proc/${pid}/mem`, 'r');
  try {
    const maps = readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n');
    return maps.map((line) => readRegion(file, line)).join('');
  } finally {
    closeSync(file);
  }
};

const MAX_REGION = 128 * 1024 * 1024;
const readRegion = (file: number, line: string): string => {
  const [, first = '', last = ''] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? [];
  const start = Number.parseInt(first, 16);
  const length = Number.parseInt(last, 16) - start;
  if (!(length > 0 && length <= MAX_REGION)) return '';
  const bytes = Buffer.alloc(length);
  try {
    return bytes.toString('latin1', 0, readSync(file, bytes, 0, length, start));
  } catch {
    return ''; // a region that was freed in the meantime, or only reserved
  }
};
