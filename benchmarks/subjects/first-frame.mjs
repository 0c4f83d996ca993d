// From a request to the first of its text, through Antiphon or over HTTP: one client, in this one
// process, for all.
import http from 'node:http';
import WebSocket from 'ws';

const TURNS_PER_SESSION = 10;
/** The provider writes its words one after another, so many milliseconds apart. */
const PACE_MS = 2;
const contentOf = (turn) => `turn ${turn} PACE=${PACE_MS}`;

const connect = (url) =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/ws`);
    const client = { socket, lastId: 0, onFrame: () => {} };
    socket.on('message', (data) => {
      const frame = JSON.parse(data);
      if (frame.type === 'session.ack') resolve(client);
      else client.onFrame(frame);
    });
    socket.once('error', reject);
    socket.once('close', (code) => client.onFrame({ error: { message: `closed (${code})` } }));
  });

/** A turn in a session of the gateway. Answers milliseconds until its first text. */
const askGateway = (client, { session, turn }) =>
  new Promise((resolve, reject) => {
    const id = (client.lastId += 1);
    let first;
    client.onFrame = ({ id: of, event, data, error }) => {
      if (error !== undefined) return reject(new Error(error.message));
      if (of !== id) return;
      if (event === 'text') first ??= performance.now() - from;
      if (event !== 'done') return;
      if (data.status === 'completed' && first !== undefined) resolve(first);
      else
        reject(new Error(`a turn ended ${data.status}, ${first === undefined ? 'without' : 'after'} text`));
    };
    const params = { channel: 'bench', account: 'bench', peer: session, content: contentOf(turn) };
    const body = JSON.stringify({ id, method: 'chat.send', params });
    const from = performance.now();
    client.socket.send(body);
  });

const openGateway = async ({ gatewayUrl }) => {
  const clients = new Map();
  const ask = async ({ lane, ...question }) => {
    if (!clients.has(lane)) clients.set(lane, await connect(gatewayUrl));
    return askGateway(clients.get(lane), question);
  };
  return { ask, close: () => clients.forEach(({ socket }) => socket.close()) };
};

/** The text of the events that `chunk` completes; what is left of the last is kept in `rest`. */
const readText = (reading, chunk) => {
  const lines = (reading.rest + chunk).split('\n');
  reading.rest = lines.pop();
  for (const line of lines)
    if (line.startsWith('data: {')) reading.text += JSON.parse(line.slice(6)).choices[0]?.delta.content ?? '';
};

/** A streamed chat completion. Answers milliseconds until its first text, and all of it. */
const askHttp = ({ baseUrl, key, agent }, messages) =>
  new Promise((resolve, reject) => {
    const body = JSON.stringify({ model: 'mock', stream: true, messages });
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      authorization: `Bearer ${key}`,
    };
    const reading = { rest: '', text: '' };
    let first;
    const from = performance.now();
    const request = http.request(
      `${baseUrl}/chat/completions`,
      { method: 'POST', agent, headers },
      (response) => {
        response.setEncoding('utf8');
        response.on('data', (chunk) => {
          readText(reading, chunk);
          if (reading.text !== '') first ??= performance.now() - from;
        });
        response.on('error', reject);
        response.on('end', () => {
          if (response.statusCode === 200 && first !== undefined) resolve({ first, text: reading.text });
          else reject(new Error(`${response.statusCode}, ${first === undefined ? 'without' : 'with'} text`));
        });
      },
    );
    request.on('error', reject);
    request.end(body);
  });

/** Sends what was said before with each request, as users of such an interface do. */
const openHttp = ({ baseUrl, key }) => {
  const agent = new http.Agent({ keepAlive: true });
  const said = new Map();
  const ask = async ({ session, turn }) => {
    const messages = [...(said.get(session) ?? []), { role: 'user', content: contentOf(turn) }];
    const { first, text } = await askHttp({ baseUrl, key, agent }, messages);
    said.set(session, [...messages, { role: 'assistant', content: text }]);
    return first;
  };
  return { ask, close: () => agent.destroy() };
};

export const open = async (ways) => {
  const opened = {};
  for (const [name, way] of Object.entries(ways))
    opened[name] = way.gatewayUrl ? await openGateway(way) : openHttp(way);
  /**
   * Milliseconds to the first text of `turns` turns a lane, each after the end of the one before.
   */
  const first = async ({ to, tag, turns, lanes = 1 }) => {
    const samples = [];
    const drive = async (lane) => {
      for (let i = 0; i < turns; i += 1) {
        const session = `${tag}-${lane}-${Math.floor(i / TURNS_PER_SESSION)}`;
        samples.push(await opened[to].ask({ lane, session, turn: i % TURNS_PER_SESSION }));
      }
    };
    await Promise.all(Array.from({ length: lanes }, (_, lane) => drive(lane)));
    return samples;
  };
  return { first, close: () => Object.values(opened).forEach((one) => one.close()) };
};
