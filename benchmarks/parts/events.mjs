import WebSocket from 'ws';
import { summarize } from '../lib/stats.mjs';

const SUBSCRIBERS = 100;
const TURNS = { full: 200, quick: 20 };

const open = (url) =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(url);
    socket.once('open', () => resolve(socket));
    socket.once('error', reject);
  });

/** Subscribes to all new events. Resolves once the subscription begins. */
const subscribe = async (url, onEvent) => {
  const socket = await open(url);
  await new Promise((resolve) => {
    socket.on('message', (data) => {
      const receivedAt = Date.now();
      const frame = JSON.parse(data);
      if (frame.event === 'log') onEvent(frame.data, receivedAt);
      if (frame.event === 'live') resolve();
    });
    socket.send(JSON.stringify({ id: 1, method: 'events.subscribe', params: {} }));
  });
  return socket;
};

/** Takes one turn. Resolves at its end. */
const takeTurn = (socket, id) =>
  new Promise((resolve) => {
    const onMessage = (data) => {
      const frame = JSON.parse(data);
      if (frame.id !== id || frame.event !== 'done') return;
      socket.off('message', onMessage);
      resolve();
    };
    socket.on('message', onMessage);
    const params = { channel: 'bench', account: 'events', peer: `peer-${id % 8}`, content: 'hello' };
    socket.send(JSON.stringify({ id, method: 'chat.send', params }));
  });

/**
 * Measures the time from the recording of an event to its arrival at each of 100 subscribers, in
 * milliseconds. The events are those of turns, which follow one another. Recording precedes the
 * commit.
 */
export const benchEvents = async ({ stack, quick }) => {
  const url = `${stack.gatewayUrl().replace(/^http/, 'ws')}/ws`;
  const samples = [];
  const counts = Array.from({ length: SUBSCRIBERS }, () => 0);
  let isCounting = false;
  const sockets = await Promise.all(
    counts.map((_, index) =>
      subscribe(url, ({ recordedAt }, receivedAt) => {
        if (!isCounting) return;
        counts[index] += 1;
        samples.push(receivedAt - Date.parse(recordedAt));
      }),
    ),
  );
  const sender = await open(url);
  const turns = TURNS[quick ? 'quick' : 'full'];
  for (let id = 1; id <= turns; id += 1) {
    // The first turns warm the services up.
    isCounting ||= id > turns / 10;
    await takeTurn(sender, id);
  }
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  for (const socket of [...sockets, sender]) socket.close();
  return {
    subscribers: SUBSCRIBERS,
    events: Math.max(...counts),
    missed: SUBSCRIBERS * Math.max(...counts) - counts.reduce((sum, count) => sum + count, 0),
    ms: summarize(samples),
  };
};
