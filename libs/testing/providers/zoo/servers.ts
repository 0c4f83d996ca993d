import { anthropicServer } from './anthropic-dialect.js';
import { bedrockServer } from './bedrock-dialect.js';
import { geminiServer } from './gemini-dialect.js';
import { openAiError, openAiServer } from './openai-dialect.js';
import type { ZooServer } from './reply.js';

const FILTERED = { hate: { filtered: false, severity: 'safe' } };

/** An error whose `error` is a text, and one without `error` around it. */
const plainError = (message: string) => ({ error: message });
const bareError = (message: string, code: number) => ({
  ...{ object: 'error', message, type: 'BadRequestError', param: null, code },
});
/** An error of Google: the body is a list. */
const googleError = (code: number, status: string, message: string) => [{ error: { code, message, status } }];

/**
 * Servers whose behaviour is described in public. To add one, describe what differs from OpenAI or
 * Anthropic, name the sources, and run the spec of the zoo.
 */
export const ZOO: readonly ZooServer[] = [
  openAiServer({
    ...{ name: 'OpenAI', kind: 'openai', path: '/v1', model: 'gpt-4o' },
    sources: ['https://platform.openai.com/docs/api-reference/chat-streaming'],
    quirks: { more: { service_tier: 'default', system_fingerprint: 'fp_1', obfuscation: 'x7' } },
    lacks: ['thought'],
  }),
  openAiServer({
    ...{ name: 'Azure OpenAI', kind: 'openai-compatible', path: '/openai/v1', model: 'gpt-4o' },
    sources: [
      'https://github.com/microsoft/semantic-kernel/issues/3650',
      'https://github.com/microsoft/autogen/issues/6465',
    ],
    quirks: {
      opening: [
        { id: '', object: '', created: 0, model: '', choices: [], prompt_filter_results: [FILTERED] },
      ],
      closing: [
        {
          ...{ id: '', object: '', created: 0, model: '' },
          choices: [{ index: 0, finish_reason: null, content_filter_results: FILTERED }],
        },
      ],
    },
    refusals: {
      'unknown model': {
        status: 404,
        body: openAiError('The API deployment does not exist.', 'DeploymentNotFound'),
      },
      'no credit': undefined,
    },
    lacks: ['thought'],
  }),
  anthropicServer({
    ...{ name: 'Anthropic', path: '', model: 'claude-sonnet-4-5' },
    sources: ['https://docs.anthropic.com/en/docs/build-with-claude/streaming'],
  }),
  bedrockServer({
    ...{ name: 'Bedrock', path: '', model: 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0' },
    sources: [
      'https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html',
      'https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html',
    ],
  }),
  anthropicServer({
    ...{ name: 'Bedrock by a proxy of Messages', path: '/anthropic', model: 'anthropic.claude-sonnet-4-5' },
    sources: [
      'https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html',
    ],
    quirks: {
      stop: { 'amazon-bedrock-invocationMetrics': { inputTokenCount: 1, outputTokenCount: 2 } },
      ping: false,
    },
    refusals: {
      'too many requests': { status: 429, body: { message: 'Too many requests, please wait.' } },
      'no credit': undefined,
    },
  }),
  openAiServer({
    ...{ name: 'OpenRouter', kind: 'openrouter', path: '/api/v1', model: 'openai/gpt-4o-mini' },
    sources: [
      'https://github.com/openai/openai-go/issues/227',
      'https://openrouter.ai/docs/api_reference/errors-and-debugging',
      'https://github.com/diegosouzapw/OmniRoute/pull/8210',
    ],
    quirks: { thought: 'reasoning_details', more: { provider: 'OpenAI' } },
    refusals: {
      'wrong key': { status: 401, body: { error: { message: 'No auth credentials found', code: 401 } } },
      'no credit': { status: 402, body: { error: { message: 'Insufficient credits.', code: 402 } } },
      overloaded: {
        status: 502,
        body: { error: { message: 'Provider returned error', code: 502, metadata: {} } },
      },
    },
    keepAlive: ': OPENROUTER PROCESSING\n\n',
    broken: (message) =>
      `data: ${JSON.stringify({
        ...{ id: 'gen-1', object: 'chat.completion.chunk', created: 1, model: 'x', provider: 'x' },
        error: { code: 502, message },
        choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }],
      })}\n\n`,
  }),
  geminiServer({
    ...{ name: 'Gemini', path: '/v1beta', model: 'gemini-3-pro' },
    sources: [
      'https://ai.google.dev/api/generate-content',
      'https://ai.google.dev/gemini-api/docs/thought-signatures',
      'https://ai.google.dev/gemini-api/docs/troubleshooting',
    ],
  }),
  openAiServer({
    ...{ name: 'Gemini by its compatible endpoint', kind: 'openai-compatible', path: '/v1beta/openai' },
    model: 'gemini-2.5-flash',
    sources: [
      'https://github.com/jackmpcollins/magentic/pull/382',
      'https://github.com/su-kaka/gcli2api/pull/406',
      'https://ai.google.dev/gemini-api/docs/openai',
    ],
    quirks: {
      index: 'zero',
      wholeCalls: true,
      callId: () => '',
      finish: { calls: 'stop' },
      usageAt: 'every-chunk',
    },
    refusals: {
      'wrong key': { status: 400, body: googleError(400, 'INVALID_ARGUMENT', 'API key not valid.') },
      'no credit': undefined,
      'unknown model': { status: 404, body: googleError(404, 'NOT_FOUND', 'models/zoo is not found') },
      'unsupported parameter': {
        status: 400,
        body: googleError(400, 'INVALID_ARGUMENT', 'Invalid JSON payload received. Unknown name "seed"'),
      },
      'too many requests': { status: 429, body: googleError(429, 'RESOURCE_EXHAUSTED', 'Quota exceeded.') },
      overloaded: { status: 503, body: googleError(503, 'UNAVAILABLE', 'The model is overloaded.') },
    },
    lacks: ['thought'],
  }),
  openAiServer({
    ...{ name: 'vLLM', kind: 'openai-compatible', path: '/v1', model: 'qwen3' },
    sources: [
      'https://github.com/openai/openai-agents-python/issues/2129',
      'https://github.com/vllm-project/vllm/issues/28806',
    ],
    quirks: { callId: (n) => `chatcmpl-tool-${n}` },
    refusals: {
      'wrong key': { status: 401, body: { error: 'Unauthorized' } },
      'no credit': undefined,
      'unknown model': { status: 404, body: bareError('The model `zoo` does not exist.', 404) },
      'unsupported parameter': { status: 400, body: bareError('"auto" tool choice requires a parser', 400) },
      'context too long': { status: 400, body: bareError('maximum context length is 8192 tokens', 400) },
    },
    objects: true,
  }),
  openAiServer({
    ...{ name: 'llama.cpp', kind: 'openai-compatible', path: '/v1', model: 'local' },
    sources: ['https://github.com/mostlygeek/llama-swap/issues/146', 'https://github.com/ggml-org/llama.cpp'],
    quirks: { more: { timings: { prompt_n: 1, predicted_n: 2 } } },
    refusals: {
      'no credit': undefined,
      overloaded: {
        status: 503,
        body: { error: { code: 503, message: 'Loading model', type: 'unavailable_error' } },
      },
    },
  }),
  openAiServer({
    ...{ name: 'Ollama', kind: 'ollama', path: '', model: 'qwen3:8b' },
    sources: ['https://github.com/ollama/ollama/blob/main/docs/openai.md'],
    quirks: {
      thought: 'reasoning',
      wholeCalls: true,
      index: 'zero',
      more: { system_fingerprint: 'fp_ollama' },
    },
    refusals: {
      ...{ 'wrong key': undefined, 'no credit': undefined },
      'unknown model': { status: 404, body: openAiError("model 'zoo' not found", null, 'api_error') },
      overloaded: { status: 503, body: plainError('server busy, please try again.') },
    },
  }),
  openAiServer({
    ...{ name: 'LM Studio', kind: 'openai-compatible', path: '/v1', model: 'llama-3.2-1b' },
    sources: ['https://github.com/lmstudio-ai/lms/issues/107'],
    quirks: { usageAt: 'last-chunk' },
    refusals: {
      ...{ 'wrong key': undefined, 'no credit': undefined },
      'unknown model': { status: 404, body: plainError('No models loaded. Please load a model.') },
    },
    broken: (message) => `event: error\ndata: ${JSON.stringify({ error: { message } })}\n\n`,
  }),
  openAiServer({
    ...{ name: 'LiteLLM', kind: 'openai-compatible', path: '', model: 'bedrock/claude' },
    sources: ['https://docs.litellm.ai/docs/exception_mapping'],
    quirks: { wholeCalls: true },
    refusals: {
      'wrong key': {
        status: 401,
        body: openAiError('litellm.AuthenticationError: no key', '401', 'auth_error'),
      },
      'too many requests': { status: 429, body: openAiError('litellm.RateLimitError: slow down', '429') },
    },
  }),
  openAiServer({
    ...{ name: 'DeepSeek', kind: 'openai-compatible', path: '', model: 'deepseek-chat' },
    sources: [
      'https://api-docs.deepseek.com/quick_start/rate_limit',
      'https://api-docs.deepseek.com/quick_start/error_codes',
    ],
    quirks: { usageAt: 'last-chunk' },
    refusals: {
      'no credit': { status: 402, body: openAiError('Insufficient Balance', 'invalid_request_error') },
    },
  }),
  openAiServer({
    ...{ name: 'Kimi', kind: 'openai-compatible', path: '/v1', model: 'kimi-k2.5' },
    sources: ['https://github.com/earendil-works/pi/issues/2017'],
    quirks: { usageAt: 'choice', callId: (n) => `functions.tool:${n}` },
    refusals: {
      'no credit': {
        status: 429,
        body: openAiError(
          'Your account is not active, check your plan.',
          null,
          'exceeded_current_quota_error',
        ),
      },
      overloaded: {
        status: 429,
        body: openAiError('The engine is overloaded.', null, 'engine_overloaded_error'),
      },
    },
  }),
  anthropicServer({
    ...{ name: 'Kimi in the format of Anthropic', path: '/anthropic', model: 'kimi-k2.5' },
    sources: ['https://github.com/RooCodeInc/Roo-Code/issues/10351'],
    quirks: { unsigned: true, usageAtEnd: true, ping: false },
  }),
  openAiServer({
    ...{ name: 'Mistral', kind: 'openai-compatible', path: '/v1', model: 'magistral-medium-2509' },
    sources: [
      'https://github.com/BerriAI/litellm/issues/16272',
      'https://github.com/epam/ai-dial-adapter-openai/issues/395',
    ],
    quirks: {
      ...{ thought: 'content-list', wholeCalls: true, usageAt: 'last-chunk' },
      ...{ callId: (n) => `zoo00000${n}`, finish: { length: 'model_length' } },
    },
    refusals: {
      'wrong key': { status: 401, body: { detail: 'Unauthorized' } },
      'no credit': undefined,
      'unsupported parameter': {
        status: 422,
        body: {
          object: 'error',
          message: { detail: [{ type: 'extra_forbidden', msg: 'Extra inputs: seed' }] },
        },
      },
    },
  }),
  openAiServer({
    ...{ name: 'Groq', kind: 'openai-compatible', path: '/openai/v1', model: 'llama-3.3-70b' },
    sources: ['https://console.groq.com/docs/errors', 'https://console.groq.com/docs/api-reference'],
    quirks: { usageAt: 'groq', thought: 'reasoning', wholeCalls: true },
    refusals: { 'no credit': undefined, overloaded: { status: 498, body: openAiError('capacity exceeded') } },
  }),
];
