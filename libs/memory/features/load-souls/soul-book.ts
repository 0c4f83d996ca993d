import type { AgentConfig } from '@antiphon/config';
import type { Soul } from '@antiphon/memory-domain';
import type { Logger } from '@antiphon/observability';
import { readSoul } from './read-soul.js';

/** The souls of the configured agents. */
export interface SoulBook {
  /** Null for an agent that has none. */
  soulOf(agentId: string): Soul | null;
}

/** About twice what a soul should take; a larger one crowds out what was said. */
const LARGE_SOUL_TOKENS = 1_000;

type Agent = Pick<AgentConfig, 'id' | 'soulPath'>;

const loadOne = async ({ id, soulPath }: Agent, logger: Logger): Promise<Soul | null> => {
  if (soulPath === null) return null;
  const file = await readSoul(soulPath);
  const about = { agentId: id, path: soulPath };
  if (file.status === 'missing') logger.warn(about, 'the soul document does not exist; the agent has none');
  if (file.status === 'unusable')
    logger.warn({ ...about, reason: file.reason }, 'the soul document is left out');
  if (file.status !== 'loaded') return null;
  const tokens = file.soul?.tokens ?? 0;
  if (tokens > LARGE_SOUL_TOKENS)
    logger.warn({ ...about, tokens }, 'the soul document takes much of every context');
  return file.soul;
};

/** Reads each agent's soul document once, at the start. A missing one is a warning, and the agent has no soul. */
export const loadSouls = async (agents: readonly Agent[], logger: Logger): Promise<SoulBook> => {
  const loaded = await Promise.all(
    agents.map(async (agent) => [agent.id, await loadOne(agent, logger)] as const),
  );
  const souls = new Map(loaded);
  return { soulOf: (agentId) => souls.get(agentId) ?? null };
};
