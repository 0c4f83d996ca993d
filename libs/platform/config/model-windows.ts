import type { Family } from './model-parameters.js';

/** Window of a model that no row names: current servers of local models have at least this. */
export const DEFAULT_WINDOW = 32_768;

/** Families of models and the sizes of their contexts, tokens. Later rows win. */
export const WINDOW_FAMILIES: readonly Family[] = [
  // Ollama loads a small part of a model's window, and cuts a longer prompt without a word.
  { at: 'ollama', wants: { contextWindow: 8_192 } },
  { model: /^claude-/, wants: { contextWindow: 200_000 } },
  { model: /^claude-(?:instant|2\.0)/, wants: { contextWindow: 100_000 } },
  { model: /^gpt-3/, wants: { contextWindow: 16_384 } },
  { model: /^gpt-4(?:-0\d{3})?$/, wants: { contextWindow: 8_192 } },
  {
    model: /^(?:gpt-4o|gpt-4-turbo|gpt-4\.5|chatgpt-4o|o1-(?:mini|preview))/,
    wants: { contextWindow: 128_000 },
  },
  { model: /^(?:gpt-4\.1|gemini-(?:1\.5|[2-9]))/, wants: { contextWindow: 1_000_000 } },
  { model: /^(?:gpt-[5-9]|o[34])|^o1$|^o1-2/, wants: { contextWindow: 200_000 } },
  {
    model: /^(?:gpt-oss|deepseek|kimi|glm-?[45]|grok|mistral-(?:small|medium|large))/,
    wants: { contextWindow: 128_000 },
  },
  { at: 'bedrock', model: /claude/, wants: { contextWindow: 200_000 } },
  { at: 'bedrock', model: /nova-(?:lite|pro|premier)/, wants: { contextWindow: 300_000 } },
];

/** Part of a window that a context fills at most: the rest is for answers and files sent as bytes. */
const CONTEXT_SHARE = 0.5;
const MIN_CONTEXT = 2_048;
/** Largest context without a setting, tokens: a longer one costs more than it helps. */
export const MAX_CONTEXT = 48_000;
/** Part of a context that memory assembles. */
const MEMORY_SHARE = 0.5;
/** Target for what memory assembles without a setting, tokens. */
const MEMORY_TARGET = 4_000;

/** Sizes of the parts of a context, tokens. */
export interface ContextSizes {
  readonly contextTokens: number;
  readonly memoryTokens: number;
  /** Images and documents that are sent as bytes, next to the context. */
  readonly mediaTokens: number;
}

/** Returns the sizes for a model with this window. The setting `context_tokens` wins. */
export const contextSizes = (contextWindow: number, setting: number | undefined): ContextSizes => {
  const fitted = Math.max(MIN_CONTEXT, Math.floor(contextWindow * CONTEXT_SHARE));
  const contextTokens = setting ?? Math.min(MAX_CONTEXT, fitted);
  const memory = Math.max(1, Math.floor(contextTokens * MEMORY_SHARE));
  return {
    contextTokens,
    memoryTokens: setting === undefined ? Math.min(MEMORY_TARGET, memory) : memory,
    mediaTokens: Math.max(0, Math.floor(contextWindow * 0.9) - contextTokens),
  };
};
