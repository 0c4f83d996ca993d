import type { ModelParameters } from '@antiphon/config';
import type { ModelFailure, ModelRequest } from '@antiphon/providers-domain';

/** A refused request, and the server's text. */
export interface RefusedRequest {
  readonly parameters: ModelParameters;
  readonly request: Pick<
    ModelRequest,
    'temperature' | 'thinking' | 'tools' | 'messages' | 'system' | 'streaming' | 'maxOutputTokens'
  >;
  readonly format: 'anthropic' | 'gemini' | 'openai';
  /** The server's text. */
  readonly text: string;
}

type Change = Partial<ModelParameters>;

/** Returns what the refusal teaches; null for nothing. */
type Lesson = (refused: RefusedRequest) => Change | null;

/** Words of servers for a parameter that they take with no value. */
const NOT_TAKEN =
  /unsupported|not supported|n't supported|does not support|not support|unrecogni[sz]ed|unknown|unexpected|not permitted|extra_forbidden|extra inputs|not allowed|not available|no longer|deprecated|invalid (?:argument|parameter|field|property)|not enabled|must not|additional propert|only the default|please remove|cannot (?:be )?(?:used|set|specif)|use '?max_completion_tokens/i;

const isNotTaken = (text: string): boolean => NOT_TAKEN.test(text);

const outputLimit: Lesson = ({ parameters, text }) => {
  const { outputLimit: sent } = parameters;
  const isNamed = sent === 'max_tokens' ? /\bmax_tokens\b/.test(text) : text.includes(sent);
  if (!isNamed || !isNotTaken(text)) return null;
  return { outputLimit: sent === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens' };
};

/** Largest limit that a refusal of a higher one names. */
const LARGEST = [
  / > (\d+)/,
  /at most (\d+)/,
  /less than or equal to (\d+)/,
  /<= ?(\d+)/,
  /exceed (\d+)/,
  /\[\d+, ?(\d+)\]/,
] as const;

/** Smallest limit that is worth another request. */
const MIN_OUTPUT = 16;

const largestOutput: Lesson = ({ parameters, request, text }) => {
  if (!/\b(?:max(?:_completion)?_tokens|max_?output_?tokens)\b/i.test(text)) return null;
  const found = LARGEST.map((pattern) => Number(pattern.exec(text)?.[1])).find(
    (limit) => limit >= MIN_OUTPUT,
  );
  const sent = Math.min(request.maxOutputTokens, parameters.maxOutput ?? Infinity);
  return found !== undefined && found < sent ? { maxOutput: found } : null;
};

const temperature: Lesson = ({ parameters, request, text }) =>
  parameters.temperature && request.temperature !== undefined && text.includes('temperature')
    ? { temperature: false }
    : null;

const streamOptions: Lesson = ({ parameters, request, text }) =>
  request.streaming && parameters.streamOptions && /stream_options|include_usage/.test(text)
    ? { streamOptions: false }
    : null;

const STREAM = /["'`]stream["'`]|streaming (?:is not|isn't|not) (?:supported|allowed)|to stream this model/i;

const streaming: Lesson = ({ parameters, request, text }) =>
  request.streaming && parameters.streaming && STREAM.test(text) && !text.includes('stream_options')
    ? { streaming: false }
    : null;

const SYSTEM_REFUSED =
  /system (?:role|message|prompt|instruction)s?[^]{0,30}?not (?:supported|allowed|enabled)|developer (?:role|message|instruction)s?[^]{0,30}?not (?:supported|allowed|enabled)|only user,? (?:and )?assistant/i;
const ROLE_NAMED = /\broles?\b/i;
const NOT_ONE_OF = /not one of|expected one of|must be one of|should be|does not match/i;

/** Role to try after one that is refused. */
const systemRole: Lesson = ({ parameters, request, text }) => {
  const { systemRole: sent } = parameters;
  if (sent === 'user' || request.system.trim() === '') return null;
  const isNamed = ROLE_NAMED.test(text) && text.includes(sent) && (isNotTaken(text) || NOT_ONE_OF.test(text));
  if (!isNamed && !SYSTEM_REFUSED.test(text)) return null;
  if (sent === 'developer') return { systemRole: 'system' };
  return { systemRole: /messages\[\d+\]\.role|["'`]developer/.test(text) ? 'developer' : 'user' };
};

const systemBlocks: Lesson = ({ parameters, request, text }) => {
  if (request.system.trim() === '' || !/\bsystem\b/.test(text) || ROLE_NAMED.test(text)) return null;
  const wantsList = /valid (?:list|array)|(?:be|expected) an? (?:list|array)|expected (?:list|array)/i.test(
    text,
  );
  const wantsText = /valid string|(?:be|expected) a string|expected string|cannot unmarshal array/i.test(
    text,
  );
  // Marks for the cache need blocks.
  if (wantsText && parameters.promptCache) return { promptCache: false, systemBlocks: false };
  if (wantsList === wantsText || parameters.systemBlocks === wantsList) return null;
  return { systemBlocks: wantsList };
};

const promptCache: Lesson = ({ parameters, text }) =>
  parameters.promptCache && text.includes('cache_control') ? { promptCache: false } : null;

const SCHEMA =
  /invalid schema|json schema is invalid|schema[^]{0,60}?(?:invalid|not supported|unsupported)|unsupported schema|\$schema|additionalProperties|anyOf|oneOf|allOf|function_declarations|Unknown name|patternProperties|parameters_?json_?schema|exclusiveM/i;
const TOOLS = /\btools?\b|function|input_schema|parameters/i;

const toolSchemas: Lesson = ({ parameters, request, text }) =>
  request.tools.length > 0 && parameters.toolSchemas === 'full' && SCHEMA.test(text) && TOOLS.test(text)
    ? { toolSchemas: 'simple' }
    : null;

const ONE_CALL = /(?:single|one) tool.?calls?|parallel (?:tool|function) calls?/i;

const parallelToolCalls: Lesson = ({ parameters, request, text }) => {
  const { parallelToolCalls: sent } = parameters;
  const usesTools = request.tools.length > 0 || request.messages.some(({ role }) => role === 'tool');
  if (!usesTools) return null;
  if (sent === 'one' && /parallel_tool_calls|disable_parallel_tool_use/.test(text) && isNotTaken(text))
    return { parallelToolCalls: 'split' };
  return sent === 'many' && ONE_CALL.test(text) ? { parallelToolCalls: 'one' } : null;
};

const thinking: Lesson = ({ parameters, request, text }) => {
  const { thinking: sent } = parameters;
  if (request.thinking === undefined || sent === 'none') return null;
  if (!/thinking|budget_tokens|reasoning(?:_effort|\.effort|["'`])|output_config|\beffort\b/i.test(text))
    return null;
  if (/must be passed back|expected `?thinking|reasoning_content/i.test(text)) return null;
  if (sent === 'budget' && /adaptive/.test(text)) return { thinking: 'adaptive' };
  if (sent === 'adaptive' && /adaptive/.test(text)) return { thinking: 'budget' };
  return isNotTaken(text) ? { thinking: 'none' } : null;
};

/** A model takes a level of thinking, a budget, or neither. */
const thinkingOfGemini: Lesson = ({ parameters, request, text }) => {
  const { thinking: sent } = parameters;
  if (request.thinking === undefined || sent === 'none' || !/thinking|thinkingConfig/i.test(text))
    return null;
  return { thinking: sent === 'budget' ? 'none' : 'budget' };
};

const REASONING =
  /reasoning_content|reasoning_details|thinking_blocks|["'`.]reasoning\b|content\[\]\.thinking/;
const WANTED = /must be (?:passed|provided|included|sent)|missing|is required|field required/i;

const reasoning: Lesson = ({ parameters, request, text }) => {
  const { reasoning: sent } = parameters;
  if (!REASONING.test(text) || !request.messages.some(({ role }) => role === 'assistant')) return null;
  if (WANTED.test(text)) return sent === 'session' ? null : { reasoning: 'session' };
  return sent !== 'none' && isNotTaken(text) ? { reasoning: 'none' } : null;
};

const emptyContent: Lesson = ({ parameters, request, text }) =>
  parameters.emptyContent === null &&
  request.messages.some((message) => message.role === 'assistant' && message.text === '') &&
  /content/.test(text) &&
  /\bnull\b|\bNone\b|NoneType|valid string|a string|field required|missing field/i.test(text)
    ? { emptyContent: '' }
    : null;

/** The more exact lessons first. */
const LESSONS = {
  openai: [
    ...[largestOutput, outputLimit, temperature, streamOptions, streaming, reasoning, thinking],
    ...[parallelToolCalls, toolSchemas, systemRole, emptyContent],
  ],
  anthropic: [
    ...[promptCache, largestOutput, temperature, streaming, reasoning, thinking],
    ...[parallelToolCalls, toolSchemas, systemBlocks],
  ],
  gemini: [largestOutput, temperature, thinkingOfGemini, toolSchemas, systemRole],
} as const satisfies Record<RefusedRequest['format'], readonly Lesson[]>;

/** Statuses of a refusal of the request itself. Servers fail with 500 in a model's template. */
const STATUSES: ReadonlySet<number | undefined> = new Set([undefined, 400, 404, 422, 500]);

/**
 * Returns the parameters that a refusal asks for; null if it names none that was sent. A parameter
 * that the configuration sets does not change.
 */
export const learnFrom = (
  failure: ModelFailure,
  known: Omit<RefusedRequest, 'text'>,
  fixed: ReadonlySet<keyof ModelParameters>,
): ModelParameters | null => {
  if (failure.refused !== true || !STATUSES.has(failure.status)) return null;
  const refused = { ...known, text: failure.refusal ?? '' };
  for (const lesson of LESSONS[known.format]) {
    const change = lesson(refused);
    const isFixed =
      change !== null && Object.keys(change).some((key) => fixed.has(key as keyof ModelParameters));
    if (change !== null && !isFixed) return { ...known.parameters, ...change };
  }
  return null;
};
