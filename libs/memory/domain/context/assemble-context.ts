import type { Fact } from '@antiphon/contracts/memory';
import { selectFacts } from '../facts/select-facts.js';
import { fitSoul } from './soul.js';
import type { Soul } from './soul.js';

export interface ContextParts {
  readonly soul: Soul | null;
  /** In force, in the order in which they were learned. */
  readonly facts: readonly Fact[];
  readonly query: string;
  readonly budgetTokens: number;
}

export interface AssembledContext {
  readonly soul: Soul | null;
  readonly facts: readonly Fact[];
  /** Of all of it; never above the budget. */
  readonly tokens: number;
}

/** What memory puts before a model: the soul first, then the facts that matter, within the budget. */
export const assembleContext = ({ soul, facts, query, budgetTokens }: ContextParts): AssembledContext => {
  const fitted = fitSoul(soul, budgetTokens);
  const soulTokens = fitted?.tokens ?? 0;
  const selection = selectFacts(facts, query, budgetTokens - soulTokens);
  return { soul: fitted, facts: selection.facts, tokens: soulTokens + selection.tokens };
};
