/** Output tokens that every model in use can write in one call, also with a small context. */
const DEFAULT_MAX_OUTPUT_TOKENS = 4_096;

/**
 * Output limits by model family: enough for a long answer, and no more than the vendor accepts.
 * Models that think before they answer have room for both. OpenRouter puts the vendor and a `/`
 * before the name, and local servers put a `:` and a size behind it.
 */
const OUTPUT_LIMITS: readonly (readonly [RegExp, number])[] = [
  [/^claude-3-(?:opus|sonnet|haiku)/, 4_096],
  [/^claude-3[-.]5/, 8_192],
  [/^claude-/, 16_384],
  [/^gpt-(?:3|4-)|^gpt-4$/, 4_096],
  [/^(?:gpt-[5-9]|o[1-9])/, 32_768],
  [/^(?:gpt-4o|gpt-4\.1|chatgpt-4o)/, 16_384],
  [/^gpt-oss/, 16_384],
  [/^deepseek-(?:reasoner|r1)/, 32_768],
  [/^deepseek/, 8_192],
  [/^(?:qwq|qwen-?[3-9])/, 16_384],
  [/^qwen/, 8_192],
  [/^kimi|^moonshot/, 16_384],
  [/^glm-?[45]/, 16_384],
  [/^gemini-(?:2\.5|[3-9])/, 32_768],
  [/^gemini/, 8_192],
  [/^(?:mistral|magistral|codestral|ministral|devstral)/, 8_192],
  [/^grok/, 16_384],
  [/^llama-?(?:3\.[1-9]|[4-9])/, 8_192],
];

/** Returns the output tokens that a call to a model asks for, unless a setting says otherwise. */
export const maxOutputTokensOf = (model: string): number => {
  const name = model.slice(model.lastIndexOf('/') + 1).toLowerCase();
  return OUTPUT_LIMITS.find(([family]) => family.test(name))?.[1] ?? DEFAULT_MAX_OUTPUT_TOKENS;
};
