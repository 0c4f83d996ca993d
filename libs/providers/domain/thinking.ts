/** Thinking that a request asks for: a budget in tokens, or an effort. */
export type Thinking = number | 'low' | 'medium' | 'high';

/** Tokens of an effort, at a model that takes a budget, and for the output limit of a call. */
const BUDGETS = { low: 2_048, medium: 8_192, high: 16_384 } as const;
type Effort = keyof typeof BUDGETS;

/** Smallest budget that Anthropic accepts, and the least of the output that it leaves. */
const MIN_BUDGET = 1_024;
const MIN_ANSWER = 256;

/**
 * Returns the tokens that a setting adds to the output limit of a call: thinking counts towards it.
 */
export const thinkingTokens = (thinking: Thinking | null | undefined): number => {
  if (thinking === null || thinking === undefined) return 0;
  return typeof thinking === 'number' ? thinking : BUDGETS[thinking];
};

/** Returns the effort of a setting: the least one whose tokens are enough for a budget. */
export const effortOf = (thinking: Thinking): Effort => {
  if (typeof thinking !== 'number') return thinking;
  if (thinking <= BUDGETS.low) return 'low';
  return thinking <= BUDGETS.medium ? 'medium' : 'high';
};

/**
 * Returns the budget of a call within its output limit. Null if the limit has no room for the
 * smallest one.
 */
export const budgetWithin = (thinking: Thinking, maxOutputTokens: number): number | null => {
  const budget = Math.min(Math.max(MIN_BUDGET, thinkingTokens(thinking)), maxOutputTokens - MIN_ANSWER);
  return budget < MIN_BUDGET ? null : budget;
};
