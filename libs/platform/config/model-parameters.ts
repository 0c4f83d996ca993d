import { z } from 'zod';
import type { AntiphonConfig, ProviderConfig } from './antiphon-config.js';
import { bool, hint, int, shownText } from './key-hints.js';
import { INPUT_FAMILIES } from './model-inputs.js';
import { DEFAULT_WINDOW, WINDOW_FAMILIES } from './model-windows.js';
import { matchesPattern } from './prices.js';
import type { ProviderKind } from './provider-kinds.js';

const OUTPUT_LIMITS = ['max_tokens', 'max_completion_tokens'] as const;
const SYSTEM_ROLES = ['system', 'developer', 'user'] as const;
const SCHEMAS = ['full', 'simple'] as const;
const PARALLEL = ['many', 'one', 'split'] as const;
const THINKING = ['budget', 'adaptive', 'effort', 'reasoning', 'none'] as const;
const REASONING = ['turn', 'session', 'none'] as const;

/** How a model wants its requests. */
export interface ModelParameters {
  /** Field with the maximum of the answer's tokens. */
  readonly outputLimit: (typeof OUTPUT_LIMITS)[number];
  /** False if a temperature is refused. */
  readonly temperature: boolean;
  /** Role of the system text. With `user` it joins the first message. */
  readonly systemRole: (typeof SYSTEM_ROLES)[number];
  /** True if the system text is a list of blocks. */
  readonly systemBlocks: boolean;
  /** `simple`: the schemas of tools keep their plain keywords only. */
  readonly toolSchemas: (typeof SCHEMAS)[number];
  /**
   * `one`: the request asks for one tool call at a time, and each message has one. `split`: each
   * message has one, and the request does not ask.
   */
  readonly parallelToolCalls: (typeof PARALLEL)[number];
  /** True if a stream is asked for its usage. */
  readonly streamOptions: boolean;
  /** False if answers are not streamed. */
  readonly streaming: boolean;
  /**
   * How thinking is asked for: `budget` and `adaptive` in Anthropic's format, `effort` as
   * OpenAI's `reasoning_effort`, `reasoning` as OpenRouter's object. At Gemini, `budget` is a
   * budget and `effort` a level.
   */
  readonly thinking: (typeof THINKING)[number];
  /** How long reasoning is sent back: in the open turn, in later ones too, or never. */
  readonly reasoning: (typeof REASONING)[number];
  /** Content of a message that only calls tools. */
  readonly emptyContent: '' | null;
  /** False if marks for the prompt cache are refused. */
  readonly promptCache: boolean;
  /** True if the model takes images. */
  readonly images: boolean;
  /** True if the model takes PDF. Else it gets the text of a document. */
  readonly documents: boolean;
  /** Size of the model's context, tokens. */
  readonly contextWindow: number;
  /** Largest output limit that is accepted; null where none is known. */
  readonly maxOutput: number | null;
}

const DEFAULTS: ModelParameters = {
  outputLimit: 'max_tokens',
  temperature: true,
  systemRole: 'system',
  systemBlocks: false,
  toolSchemas: 'full',
  parallelToolCalls: 'many',
  streamOptions: true,
  streaming: true,
  thinking: 'effort',
  reasoning: 'turn',
  emptyContent: null,
  promptCache: true,
  images: false,
  documents: false,
  contextWindow: DEFAULT_WINDOW,
  maxOutput: null,
};

/** A family of models at some kinds of providers, and what it wants. */
export interface Family {
  /** Absent for every kind. */
  readonly at?: ProviderKind;
  /** Matches the model's name without the vendor before a `/`. */
  readonly model?: RegExp;
  readonly wants: Partial<ModelParameters>;
}

/** Later rows win. A refusal that names a parameter corrects a wrong row. */
const FAMILIES: readonly Family[] = [
  // Names without a version, and the models of other vendors, take a budget.
  { at: 'anthropic', wants: { thinking: 'budget' } },
  {
    at: 'anthropic',
    model: /^claude-(?:[a-z]+-)?(?:[5-9]|4[-.][6-9]|\d\d|preview)/,
    wants: { thinking: 'adaptive' },
  },
  { at: 'anthropic', model: /^claude-(?:instant|2|3-(?:5|opus|sonnet|haiku))/, wants: { thinking: 'none' } },
  { at: 'anthropic', model: /^claude-opus-(?:4-[7-9]|[5-9])/, wants: { temperature: false } },
  { at: 'openai', wants: { outputLimit: 'max_completion_tokens' } },
  { at: 'openai', model: /^(?:gpt-3|gpt-4|chatgpt-4)/, wants: { thinking: 'none' } },
  { at: 'openai', model: /^(?:o\d|gpt-[5-9])/, wants: { temperature: false } },
  { at: 'openai', model: /^o1-(?:mini|preview)/, wants: { systemRole: 'user', thinking: 'none' } },
  { at: 'azure-openai', wants: { outputLimit: 'max_completion_tokens' } },
  { at: 'azure-openai', model: /^(?:gpt-3|gpt-4|gpt-35)/, wants: { thinking: 'none' } },
  { at: 'azure-openai', model: /^(?:o\d|gpt-5)/, wants: { temperature: false } },
  // Later models take a level of thinking.
  { at: 'gemini', model: /^gemini-2\.5/, wants: { thinking: 'budget' } },
  { at: 'gemini', model: /^gemini-(?:1|2\.0)/, wants: { thinking: 'none' } },
  { at: 'gemini', model: /^gemma/, wants: { thinking: 'none', systemRole: 'user' } },
  { at: 'openrouter', wants: { thinking: 'reasoning' } },
  // Calls of tools want their reasoning back in all later requests.
  { model: /^deepseek/, wants: { reasoning: 'session' } },
  // Names at Bedrock have a region, a vendor and a version: `us.anthropic.claude-…-v1:0`.
  { at: 'bedrock', wants: { thinking: 'none', reasoning: 'none', promptCache: false } },
  { at: 'bedrock', model: /amazon\.nova/, wants: { promptCache: true } },
  { at: 'bedrock', model: /claude/, wants: { thinking: 'budget', reasoning: 'turn', promptCache: true } },
  {
    at: 'bedrock',
    model: /claude-(?:[a-z]+-)?(?:[5-9]|4[-.][6-9])(?!\d)/,
    wants: { thinking: 'adaptive' },
  },
  { at: 'bedrock', model: /claude-(?:instant|v2|3-(?:5|opus|sonnet|haiku))/, wants: { thinking: 'none' } },
];

const oneOf = <T extends readonly [string, ...string[]]>(values: T, what: string, example: string) =>
  hint(z.enum(values), `${what}: one of ${values.join(', ')}`, example).optional();

/** Schema of an entry of `[[parameters]]`. */
export const Parameters = z.strictObject({
  provider: shownText("a provider's name or kind, or *", 'provider = "corp"', 64),
  model: shownText("a model's name, in which * stands for any characters", 'model = "gpt-5*"', 200),
  output_limit: oneOf(
    OUTPUT_LIMITS,
    'the field with the output limit',
    'output_limit = "max_completion_tokens"',
  ),
  temperature: bool('whether a temperature is sent', 'temperature = false').optional(),
  system_role: oneOf(SYSTEM_ROLES, 'the role of the system text', 'system_role = "developer"'),
  system_blocks: bool('whether the system text is sent as blocks', 'system_blocks = true').optional(),
  tool_schemas: oneOf(SCHEMAS, 'the schemas of tools', 'tool_schemas = "simple"'),
  parallel_tool_calls: oneOf(PARALLEL, 'the tool calls of a message', 'parallel_tool_calls = "one"'),
  stream_options: bool('whether a stream is asked for its usage', 'stream_options = false').optional(),
  streaming: bool('whether answers are streamed', 'streaming = false').optional(),
  thinking: oneOf(THINKING, 'how thinking is asked for', 'thinking = "effort"'),
  reasoning: oneOf(REASONING, 'how long reasoning is sent back', 'reasoning = "session"'),
  images: bool('whether the model takes images', 'images = true').optional(),
  documents: bool(
    'whether the model takes PDF; else it gets the text of a document',
    'documents = true',
  ).optional(),
  context_window: int(
    1_024,
    100_000_000,
    "size of the model's context in tokens",
    'context_window = 32768',
  ).optional(),
});

/** Parameters of a model, and the names of those that the file sets. */
export interface KnownParameters {
  readonly parameters: ModelParameters;
  readonly fixed: ReadonlySet<keyof ModelParameters>;
}

/** Returns how a model wants its requests: by the file, else by the family of the model. */
export const findParameters = (
  { parameters: entries = [] }: Partial<Pick<AntiphonConfig, 'parameters'>>,
  { name, kind }: Pick<ProviderConfig, 'name' | 'kind'>,
  model: string,
): KnownParameters => {
  const short = model.slice(model.lastIndexOf('/') + 1);
  const families = [...FAMILIES, ...INPUT_FAMILIES, ...WINDOW_FAMILIES].filter(
    ({ at = kind, model: family }) => at === kind && (family?.test(short) ?? true),
  );
  const own = entries.filter(
    (entry) =>
      (entry.provider === '*' || entry.provider === name || entry.provider === kind) &&
      matchesPattern(entry.model, model),
  );
  // The first entry of the file wins.
  const settings = own
    .toReversed()
    .flatMap(({ provider: _provider, model: _model, ...set }) =>
      Object.entries(set).filter(([, value]) => value !== undefined),
    );
  return {
    parameters: Object.assign(
      { ...DEFAULTS },
      ...families.map(({ wants }) => wants),
      Object.fromEntries(settings),
    ) as ModelParameters,
    fixed: new Set(settings.map(([key]) => key as keyof ModelParameters)),
  };
};

/** Formats that a model takes next to text, and the size of its context. */
export type ModelInputs = Pick<ModelParameters, 'images' | 'documents' | 'contextWindow'>;

/** Returns the inputs of a model. One of an unknown provider takes text. */
export const findInputs = (
  config: Partial<Pick<AntiphonConfig, 'parameters'>>,
  provider: Pick<ProviderConfig, 'name' | 'kind'> | null,
  model: string,
): ModelInputs => {
  const found = provider ? findParameters(config, provider, model).parameters : DEFAULTS;
  return { images: found.images, documents: found.documents, contextWindow: found.contextWindow };
};
