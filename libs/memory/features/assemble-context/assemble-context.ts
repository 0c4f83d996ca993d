import type { z } from 'zod';
import type { AntiphonConfig } from '@antiphon/config';
import type { assembleContext as contract } from '@antiphon/contracts/memory';
import { failpoint } from '@antiphon/kernel';
import { assembleContext } from '@antiphon/memory-domain';
import type { IdentityBook } from '../load-souls/identity-book.js';
import type { RecallFacts } from '../recall-facts/recall-facts.js';

export type AssembleRequest = z.output<(typeof contract)['request']>;
export type AssembleReply = z.input<(typeof contract)['reply']>;
export type AssembleContext = (request: AssembleRequest) => Promise<AssembleReply>;

export interface AssembleDeps {
  readonly recallFacts: RecallFacts;
  readonly identities: Pick<IdentityBook, 'soulOf'>;
  readonly config: Pick<AntiphonConfig, 'memory' | 'features'>;
}

const NOTHING: AssembleReply = { soul: null, facts: [], tokens: 0, version: 0 };

/** What memory puts before a model: one indexed query, beside a look at whether the agent's documents have changed. */
export const createAssembleContext =
  ({ recallFacts, identities, config }: AssembleDeps): AssembleContext =>
  async ({ workspace, sessionId, sessionKey, agentId, atLeast, query, budgetTokens }) => {
    await failpoint('memory.context.asked');
    if (!config.features.memoryV1) return { ...NOTHING, version: atLeast };
    const recalled = config.memory.semanticEnabled
      ? recallFacts({ workspace, sessionId, sessionKey, atLeast, includeSuperseded: false })
      : { facts: [], version: atLeast };
    const [soul, { facts, version }] = await Promise.all([identities.soulOf(agentId), recalled]);
    await failpoint('memory.context.assembled');
    const context = assembleContext({ soul, facts, query, budgetTokens });
    return { soul: context.soul, facts: [...context.facts], tokens: context.tokens, version };
  };
