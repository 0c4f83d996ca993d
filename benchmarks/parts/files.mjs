import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import WebSocket from 'ws';
import { callTimes } from '../lib/call-times.mjs';
import { summarize } from '../lib/stats.mjs';
import { FILES_AGENT } from '../lib/stack.mjs';

const run = promisify(execFile);
const PLAN = {
  full: { calls: 200, warmUp: 20, files: 10_000, searches: 20, turns: 1_000, reads: 50 },
  quick: { calls: 20, warmUp: 3, files: 1_000, searches: 5, turns: 50, reads: 10 },
};
const FILE_BYTES = 10_000;
const WRITERS = 16;
const FILES = '/api/v1/workspaces/default/files';

const lineOf = (index) => `line ${index} of a text that is neither short nor long\n`;
const textOf = (bytes) => {
  let text = '';
  for (let index = 0; text.length < bytes; index += 1) text += lineOf(index);
  return text;
};

const connect = (url) =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(url);
    socket.once('open', () => resolve(socket));
    socket.once('error', reject);
  });

let lastId = 0;
/** Takes one turn in a session of its peer. Resolves with the id of the session. */
const takeTurn = (socket, peer, content) =>
  new Promise((resolve, reject) => {
    const id = (lastId += 1);
    let sessionId;
    const onMessage = (data) => {
      const frame = JSON.parse(data);
      if (frame.id !== id) return;
      if (frame.event === 'accepted') sessionId = frame.data.sessionId;
      if (frame.event !== 'done' && frame.error === undefined) return;
      socket.off('message', onMessage);
      if (frame.data?.status === 'completed') resolve(sessionId);
      else reject(new Error(`a turn ended: ${JSON.stringify(frame)}`));
    };
    socket.on('message', onMessage);
    const params = { channel: 'bench', account: 'files', peer, agent: FILES_AGENT, content };
    socket.send(JSON.stringify({ id, method: 'chat.send', params }));
  });

const fetchOk = async (url, options) => {
  const response = await fetch(url, options);
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  return response;
};

/** Returns the events of a session, oldest first. */
const readEvents = async (gatewayUrl, sessionId) => {
  const events = [];
  for (let cursor = ''; cursor !== null;) {
    const url = `${gatewayUrl}/api/v1/events?session=${sessionId}&limit=1000${cursor}`;
    const page = await (await fetchOk(url)).json();
    events.push(...page.events);
    cursor = page.nextCursor === null ? null : `&cursor=${encodeURIComponent(page.nextCursor)}`;
  }
  return events;
};

const put = (gatewayUrl, path, text) =>
  fetchOk(`${gatewayUrl}${FILES}/${path}`, {
    ...{ method: 'PUT', headers: { 'content-type': 'application/octet-stream' }, body: text },
  });

/** Measures calls of the tools in turns that follow one another, alternating. */
const benchCalls = async (gatewayUrl, socket, { calls, warmUp }) => {
  await put(gatewayUrl, 'bench/large.txt', `mark 0\n${textOf(100_000)}`);
  const rounds = async (peer, count, from) => {
    let sessionId;
    for (let index = 0; index < count; index += 1) {
      const mark = from + index;
      const edit = { path: 'bench/large.txt', old: `mark ${mark}\n`, new: `mark ${mark + 1}\n` };
      const tools = [
        ['echo', { text: 'x'.repeat(300) }],
        ['read', { path: 'bench/large.txt', lines: 5_000 }],
        ['edit', edit],
      ];
      for (const [name, input] of tools)
        sessionId = await takeTurn(socket, peer, `/tool ${name} ${JSON.stringify(input)}`);
    }
    return sessionId;
  };
  await rounds('warm', warmUp, 0);
  const sessionId = await rounds('measured', calls, warmUp);
  const times = callTimes(await readEvents(gatewayUrl, sessionId));
  return ['echo', 'read', 'edit'].map((tool) => ({ tool, ms: summarize(times[tool]) }));
};

/** Writes the same files into the workspace and into a folder. */
const writeFiles = async (gatewayUrl, folder, count) => {
  const filler = textOf(FILE_BYTES);
  const writer = async (first) => {
    for (let index = first; index < count; index += WRITERS) {
      const path = `bench/tree/d${index % 100}/f${index}.txt`;
      const text = `file ${index}\n${filler}${index % 500 === 0 ? 'the needle is here\n' : ''}`;
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
      await put(gatewayUrl, path, text);
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, (_, first) => writer(first)));
};

const findReference = async () => {
  const ripgrep = await run('rg', ['--version']).catch(() => null);
  return ripgrep
    ? { name: 'ripgrep', command: 'rg', flags: ['-n'] }
    : { name: 'grep -rnIF', command: 'grep', flags: ['-rnIF'] };
};

const benchSearch = async (gatewayUrl, socket, { files, searches }) => {
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-bench-files-'));
  try {
    await writeFiles(gatewayUrl, folder, files);
    const { name, command, flags } = await findReference();
    const reference = [];
    let sessionId;
    for (let index = -1; index < searches; index += 1) {
      const from = performance.now();
      await run(command, [...flags, 'the needle is', folder], { maxBuffer: 1e8 });
      if (index >= 0) reference.push(performance.now() - from);
      const input = { query: 'the needle is', path: 'bench/tree', limit: 500 };
      sessionId = await takeTurn(
        socket,
        index < 0 ? 'search-warm' : 'search',
        `/tool search ${JSON.stringify(input)}`,
      );
    }
    const { search } = callTimes(await readEvents(gatewayUrl, sessionId));
    return [
      { what: 'tool search', files, ms: summarize(search) },
      { what: name, files, ms: summarize(reference) },
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/** Measures reads of a chat as a file. */
const benchChat = async (gatewayUrl, { turns, reads }) => {
  const chats = `${gatewayUrl}/api/v1/workspaces/default/chats`;
  const post = async (url, body) =>
    (
      await fetchOk(url, {
        ...{ method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) },
      })
    ).json();
  const chat = await post(chats, { name: 'bench', agent: FILES_AGENT });
  for (let turn = 0; turn < turns; turn += 1)
    await post(`${chats}/${chat.id}`, { command: 'message', content: `message ${turn}` });
  const read = () =>
    fetchOk(`${gatewayUrl}${FILES}/${encodeURIComponent(chat.path)}`).then((response) => response.text());
  // The messages wait for each other: the last one is answered last.
  while (!(await read()).includes(`message ${turns - 1}`))
    await new Promise((resolve) => setTimeout(resolve, 200));
  const samples = [];
  for (let index = 0; index < reads; index += 1) {
    const from = performance.now();
    await read();
    samples.push(performance.now() - from);
  }
  return { turns, ms: summarize(samples) };
};

/**
 * Measures tool calls from the model's answer to its next call, and compares them with a tool in
 * the sandbox. Compares a search with a program on a folder. Reads a chat as a file.
 */
export const benchFiles = async ({ stack, quick }) => {
  const plan = PLAN[quick ? 'quick' : 'full'];
  const gatewayUrl = stack.gatewayUrl();
  const socket = await connect(`${gatewayUrl.replace(/^http/, 'ws')}/ws`);
  try {
    const calls = await benchCalls(gatewayUrl, socket, plan);
    const search = await benchSearch(gatewayUrl, socket, plan);
    return { calls, search, chat: await benchChat(gatewayUrl, plan) };
  } finally {
    socket.close();
  }
};
