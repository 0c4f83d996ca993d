import type { Family } from './model-parameters.js';

const IMAGES = { images: true } as const;
const ALL = { images: true, documents: true } as const;
const NONE = { images: false, documents: false } as const;

/**
 * Families that take images and PDF. Later rows win. A model that no row names takes text only,
 * until a setting says otherwise: a server may drop an image without a word.
 */
export const INPUT_FAMILIES: readonly Family[] = [
  { at: 'scripted', wants: ALL },
  { model: /(?:^|[-_.:])(?:vl|vision|llava|pixtral|internvl|minicpm-v|moondream|bakllava)/, wants: IMAGES },
  { model: /^(?:gemma-?3|llama-?4|mistral-(?:small|medium)|grok-[4-9])/, wants: IMAGES },
  { model: /^(?:gpt-4o|gpt-4\.[15]|gpt-4-turbo|chatgpt-4o|gpt-[5-9]|o[134])/, wants: IMAGES },
  { model: /^(?:claude-(?!instant|2)|gemini-)/, wants: IMAGES },
  { model: /^(?:o1-(?:mini|preview)|o3-mini)/, wants: NONE },
  { at: 'anthropic', wants: ALL },
  { at: 'anthropic', model: /^claude-(?:instant|2)/, wants: NONE },
  { at: 'anthropic', model: /^claude-3-(?:opus|sonnet|haiku)/, wants: { documents: false } },
  {
    at: 'openai',
    model: /^(?:gpt-4o|gpt-4\.1|chatgpt-4o|gpt-[5-9]|o1$|o1-2|o3$|o3-2|o4)/,
    wants: { documents: true },
  },
  { at: 'openai', model: /audio|realtime|search|transcribe|tts/, wants: NONE },
  {
    at: 'openrouter',
    model: /^(?:claude-(?!instant|2)|gpt-4o|gpt-4\.1|gpt-[5-9]|gemini-)/,
    wants: { documents: true },
  },
  { at: 'gemini', model: /^gemini-/, wants: ALL },
  { at: 'bedrock', model: /claude-(?!instant|v2)|nova-(?!micro)/, wants: ALL },
];
