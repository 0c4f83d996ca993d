// Antiphon from outside: a WebSocket client of the gateway, from the request to the `done` frame.
import WebSocket from 'ws';
import { driveTurns } from '../lib/drive-turns.mjs';

const connect = (url, token) =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(
      `${url.replace(/^http/, 'ws')}/ws`,
      token ? { headers: { authorization: `Bearer ${token}` } } : {},
    );
    const waiting = new Map();
    socket.on('message', (data) => {
      const frame = JSON.parse(data);
      if (frame.type === 'session.ack') return resolve({ socket, waiting });
      waiting.get(frame.id)?.(frame);
    });
    socket.once('error', reject);
    socket.once('close', (code) => {
      reject(new Error(`the gateway closed the connection (${code})`));
      for (const tell of waiting.values()) tell({ error: { message: `the connection closed (${code})` } });
    });
  });

const createClient = async (url, token) => {
  const { socket, waiting } = await connect(url, token);
  let lastId = 0;
  const turn = ({ session, content, tools }) =>
    new Promise((resolve, reject) => {
      const id = (lastId += 1);
      const seen = { text: '', results: 0, error: undefined };
      const finish = (problem) => {
        waiting.delete(id);
        if (problem === undefined) resolve();
        else reject(new Error(problem));
      };
      waiting.set(id, ({ event, data, error }) => {
        if (error !== undefined) return finish(error.message);
        if (event === 'text') seen.text += data;
        else if (event === 'tool_result') seen.results += 1;
        else if (event === 'error') seen.error = data.message;
        else if (event === 'done') {
          const whole = data.status === 'completed' && seen.text.includes('word0') && seen.results === tools;
          finish(whole ? undefined : `turn ${data.status}: ${seen.error ?? JSON.stringify(seen)}`);
        }
      });
      const params = { channel: 'bench', account: 'bench', peer: session, content };
      socket.send(JSON.stringify({ id, method: 'chat.send', params }));
    });
  return { turn, close: () => socket.close() };
};

export const open = async ({ gatewayUrl, token }) => {
  // One client a lane, as 32 users have 32 sockets; lanes are told apart by the session's tag.
  const clients = new Map();
  const clientOf = (session) => {
    const lane = session.split('-').at(-2);
    if (!clients.has(lane)) clients.set(lane, createClient(gatewayUrl, token));
    return clients.get(lane);
  };
  const turn = async (request) => (await clientOf(request.session)).turn(request);
  return {
    turns: (params) => driveTurns(turn, params),
    close: async () => {
      for (const client of clients.values()) (await client).close();
    },
  };
};
