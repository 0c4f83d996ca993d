import { litellmVersion, startLitellm } from '../lib/litellm.mjs';
import { startSubject } from '../lib/processes.mjs';
import { summarize } from '../lib/stats.mjs';

/** `turns` a block: what one is asked before it is another's turn. */
const PLAN = {
  full: { warmUp: 20, lanes: 32, rounds: 25, turns: 20 },
  quick: { warmUp: 2, lanes: 8, rounds: 3, turns: 20 },
};

const litellmOrWhyNot = async (providerUrl) => {
  try {
    return { litellm: await startLitellm(providerUrl) };
  } catch (error) {
    if (!error.unmeasured) throw error;
    return { unmeasured: error.message };
  }
};

const measureBlocks = async (client, names, { warmUp, lanes, rounds, turns }) => {
  for (const to of names) await client.call('first', { to, tag: `w${to}`, turns: warmUp, lanes });
  const samples = new Map(names.map((name) => [name, []]));
  // The round before the first warms up what is asked one at a time.
  for (let round = -1; round < rounds; round += 1)
    for (let i = 0; i < names.length; i += 1) {
      const to = names[(i + round + names.length) % names.length];
      const block = await client.call('first', { to, tag: `r${round + 1}`, turns });
      if (round >= 0) samples.get(to).push(...block);
    }
  return names.map((subject) => ({ subject, ms: summarize(samples.get(subject)) }));
};

/**
 * Measures milliseconds from a request to its first text, with one client in interleaved blocks.
 * The subjects are Antiphon (the turn is durable by then), LiteLLM's proxy (stores nothing) and the
 * provider itself. Without LiteLLM, `unmeasured` has the reason.
 */
export const benchFirstFrame = async ({ stack, providerUrl, quick }) => {
  const { litellm, unmeasured } = await litellmOrWhyNot(providerUrl);
  let client;
  try {
    const ways = {
      'antiphon-turn': { gatewayUrl: stack.gatewayUrl() },
      ...(litellm && { litellm: { baseUrl: litellm.baseUrl, key: litellm.key } }),
      'bare-provider': { baseUrl: `${providerUrl}/v1`, key: 'none' },
    };
    client = await startSubject('first-frame', ways);
    const rows = await measureBlocks(client, Object.keys(ways), PLAN[quick ? 'quick' : 'full']);
    return { rows, version: litellmVersion(), unmeasured };
  } finally {
    await client?.close();
    await litellm?.close();
  }
};
