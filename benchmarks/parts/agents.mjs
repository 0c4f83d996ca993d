import WebSocket from 'ws';
import { summarize } from '../lib/stats.mjs';
import { AGENTS } from '../lib/stack.mjs';

/** Duration of one model call, ms. */
const MODEL_MS = 800;
const PLAN = { full: { warmUp: 5, rounds: 4, turns: 25 }, quick: { warmUp: 1, rounds: 2, turns: 4 } };

const connect = (url) =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(url);
    socket.once('open', () => resolve(socket));
    socket.once('error', reject);
  });

/** Takes one turn with an agent. Resolves with its duration, ms. */
const takeTurn = (socket, id, agent, peer) =>
  new Promise((resolve, reject) => {
    const from = performance.now();
    const onMessage = (data) => {
      const frame = JSON.parse(data);
      if (frame.id !== id || (frame.event !== 'done' && frame.error === undefined)) return;
      socket.off('message', onMessage);
      if (frame.data?.status === 'completed') resolve(performance.now() - from);
      else reject(new Error(`a turn of ${agent} ended: ${JSON.stringify(frame)}`));
    };
    socket.on('message', onMessage);
    const params = { channel: 'bench', account: 'agents', peer, agent, content: `TAKE=${MODEL_MS}` };
    socket.send(JSON.stringify({ id, method: 'chat.send', params }));
  });

/**
 * Measures milliseconds a turn of one agent, and of ten agents that work at the same time. Each
 * agent has a client and a session of its own, and its turns follow one another. The model takes
 * 800 ms. Rounds alternate.
 */
export const benchAgents = async ({ stack, quick }) => {
  const { warmUp, rounds, turns } = PLAN[quick ? 'quick' : 'full'];
  const url = `${stack.gatewayUrl().replace(/^http/, 'ws')}/ws`;
  const sockets = await Promise.all(AGENTS.map(() => connect(url)));
  let lastId = 0;
  const work = async (count, tag, into) => {
    const lane = async (index) => {
      for (let turn = 0; turn < (into ? turns : warmUp); turn += 1) {
        const ms = await takeTurn(sockets[index], (lastId += 1), AGENTS[index], `${tag}-${index}`);
        into?.push(ms);
      }
    };
    await Promise.all(Array.from({ length: count }, (_, index) => lane(index)));
  };
  const [one, ten] = [[], []];
  try {
    await work(AGENTS.length, 'warm');
    for (let round = 0; round < rounds; round += 1) {
      await work(1, `one${round}`, one);
      await work(AGENTS.length, `ten${round}`, ten);
    }
  } finally {
    for (const socket of sockets) socket.close();
  }
  return {
    modelMs: MODEL_MS,
    rows: [
      { agents: 1, ms: summarize(one) },
      { agents: AGENTS.length, ms: summarize(ten) },
    ],
  };
};
