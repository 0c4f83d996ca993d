import { expect } from '@jest/globals';
import type { ModelMessage, ModelRequest, ModelTool } from '@antiphon/providers-domain';
import type { MockRequest } from '@antiphon/testing/providers';

export type Body = Record<string, unknown> & { readonly messages: readonly Record<string, unknown>[] };
export interface Refusal {
  readonly status?: number;
  readonly body: unknown;
}

export const openAiError = (message: string, param: string | null = null): Refusal => ({
  body: { error: { message, type: 'invalid_request_error', param, code: 'unsupported_parameter' } },
});
const anthropicError = (message: string): Refusal => ({
  body: { type: 'error', error: { type: 'invalid_request_error', message } },
});

export const USER: ModelMessage = { role: 'user', text: 'hello' };
export const TOOL: ModelTool = { name: 'echo', description: 'd', inputSchema: { type: 'object' } };
const TWO_CALLS: readonly ModelMessage[] = [
  USER,
  {
    role: 'assistant',
    text: '',
    toolCalls: ['a', 'b'].map((id) => ({ id, name: 'echo', input: {} })),
  },
  { role: 'tool', results: ['a', 'b'].map((id) => ({ id, name: 'echo', content: id, isError: false })) },
];

interface Case {
  readonly kind: string;
  /** Settings of the provider. */
  readonly provider?: object;
  readonly request?: Partial<ModelRequest>;
  /** Returns the server's refusal of a request; null if it takes it. */
  readonly refuse: (body: Body, request: MockRequest) => Refusal | null;
  readonly accepted: object;
  readonly without?: string;
}

export const has = (body: Body, name: string): boolean => name in body;
const roleOf = (body: Body): unknown => body.messages[0]?.['role'];

/** Refusals of real servers, as their users report them. */
export const REFUSALS: Readonly<Record<string, Case>> = {
  'max_tokens, which OpenAI’s newer models refuse': {
    kind: 'openai-compatible',
    refuse: (body) =>
      has(body, 'max_tokens')
        ? openAiError(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            'max_tokens',
          )
        : null,
    accepted: { max_completion_tokens: 4_096 },
    without: 'max_tokens',
  },
  'max_completion_tokens, which Mistral names only by its place': {
    kind: 'openai',
    refuse: (body) =>
      has(body, 'max_completion_tokens')
        ? {
            status: 422,
            body: {
              detail: [
                {
                  type: 'extra_forbidden',
                  loc: ['body', 'max_completion_tokens'],
                  msg: 'Extra inputs are not permitted',
                },
              ],
            },
          }
        : null,
    accepted: { max_tokens: 4_096 },
    without: 'max_completion_tokens',
  },
  'an output limit over the model’s own': {
    kind: 'openai-compatible',
    refuse: (body) =>
      Number(body['max_tokens']) > 2_000
        ? openAiError('max_tokens is too large: 4096. This model supports at most 2000 completion tokens.')
        : null,
    accepted: { max_tokens: 2_000 },
  },
  'a temperature': {
    kind: 'openai-compatible',
    request: { temperature: 0.5 },
    refuse: (body) =>
      has(body, 'temperature')
        ? openAiError(
            "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.",
            'temperature',
          )
        : null,
    accepted: { model: 'gpt-5' },
    without: 'temperature',
  },
  'the usage option of a stream': {
    kind: 'openai-compatible',
    refuse: (body) =>
      has(body, 'stream_options')
        ? openAiError('Unrecognized request argument supplied: stream_options')
        : null,
    accepted: { stream: true },
    without: 'stream_options',
  },
  'a stream, for an organisation that is not verified': {
    kind: 'openai',
    refuse: (body) =>
      has(body, 'stream')
        ? openAiError('Your organization must be verified to stream this model.', 'stream')
        : null,
    accepted: { model: 'gpt-5' },
    without: 'stream',
  },
  'the role of the system text': {
    kind: 'openai',
    refuse: (body) =>
      roleOf(body) === 'system'
        ? openAiError("Unsupported value: 'messages[0].role' does not support 'system' with this model.")
        : null,
    accepted: { messages: [{ role: 'developer', content: 'Be brief.' }, expect.anything()] },
  },
  'every role of a system text, in a model’s template': {
    kind: 'openai-compatible',
    refuse: (body) =>
      roleOf(body) === 'user'
        ? null
        : { status: 500, body: { error: { message: 'System role not supported' } } },
    accepted: { messages: [{ role: 'user', content: 'Be brief.\n\nhello' }] },
  },
  'keywords of a tool’s schema': {
    kind: 'openai-compatible',
    request: {
      tools: [
        {
          ...TOOL,
          inputSchema: {
            $schema: 'http://json-schema.org/draft-07/schema#',
            type: 'object',
            additionalProperties: false,
            properties: { at: { anyOf: [{ type: 'string' }, { type: 'null' }], default: null } },
          },
        },
      ],
    },
    refuse: (body) =>
      JSON.stringify(body['tools']).includes('additionalProperties')
        ? openAiError(
            'Invalid JSON payload received. Unknown name "additionalProperties" at \'tools[0].function_declarations[0].parameters\'',
          )
        : null,
    accepted: {
      tools: [{ function: { parameters: { type: 'object', properties: { at: { type: 'string' } } } } }],
    },
  },
  'two tool calls in one message': {
    kind: 'openai-compatible',
    request: { messages: TWO_CALLS },
    refuse: (body) =>
      body.messages.some(({ tool_calls }) => Array.isArray(tool_calls) && tool_calls.length > 1)
        ? { status: 500, body: { error: { message: 'This model only supports single tool-calls at once!' } } }
        : null,
    accepted: {
      parallel_tool_calls: false,
      messages: [
        ...[expect.anything(), expect.anything()],
        ...[
          { tool_calls: [{ id: 'a' }] },
          { tool_call_id: 'a' },
          { tool_calls: [{ id: 'b' }] },
          { tool_call_id: 'b' },
        ],
      ],
    },
  },
  'null as the content of a message': {
    kind: 'openai-compatible',
    request: { messages: TWO_CALLS },
    refuse: (body) =>
      body.messages.some(({ content }) => content === null)
        ? openAiError('messages.2.content: Input should be a valid string, got null')
        : null,
    accepted: {
      messages: expect.arrayContaining([expect.objectContaining({ role: 'assistant', content: '' })]),
    },
  },
  'an effort of reasoning': {
    kind: 'openai-compatible',
    request: { thinking: 'high' },
    refuse: (body) =>
      has(body, 'reasoning_effort')
        ? openAiError('Unrecognized request argument supplied: reasoning_effort')
        : null,
    accepted: { model: 'gpt-5' },
    without: 'reasoning_effort',
  },
  'reasoning that is sent back': {
    kind: 'openai-compatible',
    request: {
      messages: TWO_CALLS.map((message) =>
        message.role === 'assistant'
          ? {
              ...message,
              thought: 'hm',
              providerState: '{"openai":{"thoughtIn":["reasoning"],"fields":{},"calls":[]}}',
            }
          : message,
      ),
    },
    refuse: (body) =>
      body.messages.some((message) => 'reasoning' in message)
        ? {
            status: 422,
            body: {
              detail: [
                {
                  type: 'extra_forbidden',
                  loc: ['messages', 2, 'assistant', 'reasoning'],
                  msg: 'Extra inputs are not permitted',
                },
              ],
            },
          }
        : null,
    accepted: { model: 'gpt-5' },
  },
  'a message without its reasoning': {
    kind: 'openai-compatible',
    request: { messages: TWO_CALLS },
    refuse: (body) =>
      body.messages.some((message) => 'tool_calls' in message && !('reasoning_content' in message))
        ? openAiError('The `reasoning_content` in the thinking mode must be passed back to the API.')
        : null,
    accepted: { messages: expect.arrayContaining([expect.objectContaining({ reasoning_content: '' })]) },
  },
  'a budget of thinking, at a model that adapts': {
    kind: 'anthropic',
    request: { model: 'claude-next', thinking: 2_048 },
    refuse: (body) =>
      JSON.stringify(body['thinking']).includes('enabled')
        ? anthropicError(
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
          )
        : null,
    accepted: { thinking: { type: 'adaptive' }, output_config: { effort: 'low' } },
  },
  'marks for a prompt cache': {
    kind: 'anthropic',
    refuse: (body) =>
      JSON.stringify(body).includes('cache_control')
        ? anthropicError('system.0.cache_control: Extra inputs are not permitted')
        : null,
    accepted: { system: 'Be brief.', messages: [{ role: 'user', content: 'hello' }] },
  },
  'a system text that is a list': {
    kind: 'anthropic',
    refuse: (body) =>
      typeof body['system'] === 'string' ? null : anthropicError('system: Input should be a valid string'),
    accepted: { system: 'Be brief.' },
  },
  'a system text that is no list': {
    kind: 'anthropic',
    provider: { promptCache: false },
    refuse: (body) =>
      typeof body['system'] === 'string' ? anthropicError('system: Input should be a valid list') : null,
    accepted: { system: [{ type: 'text', text: 'Be brief.' }] },
  },
};
