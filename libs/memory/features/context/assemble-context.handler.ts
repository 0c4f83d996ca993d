import { Controller, Inject } from '@nestjs/common';
import type pg from 'pg';
import type { z } from 'zod';
import type { AntiphonConfig } from '@antiphon/config';
import { assembleContext as contract } from '@antiphon/contracts/memory';
import { failpoint } from '@antiphon/kernel';
import { assembleContext, compileIdentity } from '@antiphon/memory-domain';
import { HandleRequest } from '@antiphon/messaging';
import { CONFIG, DATABASE_POOL } from '@antiphon/service-host';
import { IDENTITY_STORE } from '../identity/identity-store.js';
import type { IdentityStore } from '../identity/identity-store.js';
import { BelievedFacts } from './believed-facts.handler.js';
import { RECALL_FACTS } from './recall-facts.js';
import type { RecallFacts, Recalled } from './recall-facts.js';

type AssembleReply = z.input<typeof contract.reply>;

const EMPTY_CONTEXT: AssembleReply = { soul: null, facts: [], tokens: 0, version: 0 };

type IdentityTexts = NonNullable<z.output<typeof contract.request>['identity']>;

/** Compiles the texts that a spawned agent has in place of files. */
const compileTexts = ({ soul, agent, identity, user }: IdentityTexts) =>
  compileIdentity([
    ...(soul === null ? [] : [{ file: 'SOUL.md' as const, text: soul }]),
    ...(agent === null ? [] : [{ file: 'AGENT.md' as const, text: agent }]),
    ...(identity === null ? [] : [{ file: 'IDENTITY.md' as const, text: identity }]),
    ...(user === null ? [] : [{ file: 'USER.md' as const, text: user }]),
  ]).packet;

/**
 * Assembles the memory part of a model's context. One indexed query reads the facts while the
 * agent's documents are checked for changes.
 */
@Controller()
export class AssembleContext {
  readonly #believed: BelievedFacts;

  constructor(
    @Inject(RECALL_FACTS) private readonly recallFacts: RecallFacts,
    @Inject(IDENTITY_STORE) private readonly identities: Pick<IdentityStore, 'soulOf'>,
    @Inject(CONFIG) private readonly config: Pick<AntiphonConfig, 'memory' | 'features'>,
    @Inject(DATABASE_POOL) pool: pg.Pool,
  ) {
    this.#believed = new BelievedFacts(pool);
  }

  @HandleRequest(contract)
  async handle(request: z.output<typeof contract.request>): Promise<AssembleReply> {
    const { agentId, identity, atLeast, query, budgetTokens } = request;
    await failpoint('memory.context.asked');
    if (!this.config.features.memoryV1) return { ...EMPTY_CONTEXT, version: atLeast };
    const recalled = this.config.memory.semanticEnabled
      ? this.#recall(request)
      : { facts: [], version: atLeast };
    const soul = identity ? compileTexts(identity) : this.identities.soulOf(agentId);
    const [compiled, { facts, version }] = await Promise.all([soul, recalled]);
    await failpoint('memory.context.assembled');
    const context = assembleContext({ soul: compiled, facts, query, budgetTokens });
    const { soul: fitted, facts: selected, tokens } = context;
    const leftOut = facts.length - selected.length;
    return { soul: fitted, facts: [...selected], tokens, version, leftOut };
  }

  async #recall({
    workspace,
    sessionId,
    sessionKey,
    atLeast,
    position,
  }: z.output<typeof contract.request>): Promise<Recalled> {
    if (position === undefined)
      return this.recallFacts({ workspace, sessionId, sessionKey, atLeast, includeSuperseded: false });
    const { facts } = await this.#believed.handle({ workspace, sessionKey, position });
    return { facts, version: atLeast };
  }
}
