import { createRouter } from '@antiphon/gateway-domain';
import { summarize } from '../lib/stats.mjs';

const SIZES = [100, 1_000, 10_000];
const BATCH = 1_000;
const BATCHES = 300;

/** One binding in two names a peer, the rest the other fields, alone or together. */
const bindingsOf = (size) =>
  Array.from({ length: size }, (_, index) => {
    const agent = `agent-${index}`;
    if (index % 2 === 0) return { agent, channel: 'telegram', peer: `peer-${index}` };
    if (index % 8 === 1) return { agent, guild: `guild-${index}` };
    if (index % 8 === 3) return { agent, team: `team-${index}`, channel: 'slack' };
    if (index % 8 === 5) return { agent, account: `account-${index}` };
    return { agent, channel: `channel-${index}` };
  });

/** Four of five keys meet a binding, of any kind; one falls through to the default agent. */
const keysOf = (bindings) =>
  Array.from({ length: BATCH }, (_, index) => {
    const { agent: _agent, ...fields } = bindings[(index * 7_919) % bindings.length];
    const known = { channel: 'none', account: 'main', peer: `unknown-${index}`, ...fields };
    return index % 5 === 0 ? { channel: 'none', account: 'main', peer: `stranger-${index}` } : known;
  });

const measure = (size) => {
  const bindings = bindingsOf(size);
  const router = createRouter(bindings, 'main');
  const keys = keysOf(bindings);
  const samples = [];
  let met = 0;
  for (let batch = -50; batch < BATCHES; batch += 1) {
    const from = performance.now();
    for (const key of keys) if (router.route(key) !== 'main') met += 1;
    if (batch >= 0) samples.push(((performance.now() - from) * 1_000) / BATCH);
  }
  if (met !== (BATCHES + 50) * BATCH * 0.8) throw new Error(`the router met ${met} bindings`);
  return summarize(samples);
};

/** Microseconds a route (samples are means of 1,000), by number of bindings. */
export const benchRoute = async () => SIZES.map((size) => ({ bindings: size, us: measure(size) }));
