import type { z } from 'zod';
import type { queryFacts as contract } from '@antiphon/contracts/memory';
import type { RecallFacts } from '../recall-facts/recall-facts.js';

export type QueryRequest = z.output<(typeof contract)['request']>;
export type QueryReply = z.input<(typeof contract)['reply']>;
export type QueryFacts = (request: QueryRequest) => Promise<QueryReply>;

/** The facts of a session's key, newest first. */
export const createQueryFacts =
  (recallFacts: RecallFacts): QueryFacts =>
  async ({ workspace, sessionId, includeSuperseded, limit }) => {
    const { facts } = await recallFacts({
      workspace,
      sessionId,
      sessionKey: null,
      includeSuperseded,
      // Who looks at facts has just seen the turn that told them.
      atLeast: 'newest',
    });
    return { facts: [...facts].reverse().slice(0, limit) };
  };
