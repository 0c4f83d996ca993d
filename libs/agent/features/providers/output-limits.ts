/** What every model in use can write in one call. */
export const DEFAULT_MAX_OUTPUT_TOKENS = 4_096;

/** Families by the name that follows the last `/` (OpenRouter puts the vendor before it). Never more than the model takes. */
const FAMILIES: readonly (readonly [RegExp, number])[] = [
  [/^claude-3-(?:opus|sonnet|haiku)/, 4_096],
  [/^claude-3[-.]5/, 8_192],
  [/^claude-/, 16_384],
  [/^(?:gpt-4o|gpt-4\.1|gpt-[5-9]|o[1-9])/, 16_384],
];

/** Output tokens to ask for at most: enough for a long answer, and never refused by the model. */
export const maxOutputTokensOf = (model: string): number => {
  const name = model.slice(model.lastIndexOf('/') + 1);
  return FAMILIES.find(([family]) => family.test(name))?.[1] ?? DEFAULT_MAX_OUTPUT_TOKENS;
};
