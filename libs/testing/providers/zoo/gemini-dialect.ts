import {
  ZOO_USAGE,
  type Problem,
  type Refusal,
  type ZooCall,
  type ZooReply,
  type ZooServer,
} from './reply.js';

type Json = Record<string, unknown>;

/** Gemini ends its lines with CR LF. */
const event = (data: Json): string => `data: ${JSON.stringify(data)}\r\n\r\n`;

/** Arguments are an object, and absent where there are none. */
const argsOf = ({ json }: ZooCall): unknown => {
  if (!Array.isArray(json)) return json;
  const text = (json as readonly string[]).join('');
  return text === '' ? undefined : (JSON.parse(text) as unknown);
};

const partsOf = ({ thought = [], text = [], calls = [] }: ZooReply): Json[] => [
  ...thought.map((part) => ({ text: part, thought: true })),
  ...text.map((part) => ({ text: part })),
  ...calls.map((call, index) => {
    const args = argsOf(call);
    return {
      functionCall: {
        ...{ id: call.id ?? `fc_${index}`, name: call.name },
        ...(args === undefined ? {} : { args }),
      },
      // Only the first call of an answer is signed.
      ...(index === 0 ? { thoughtSignature: 'EqQBCkgIARABGAIiQL' } : {}),
    };
  }),
];

const REASONS = { length: 'MAX_TOKENS', filter: 'SAFETY' } as const;

const usageOf = ({ usage }: ZooReply, share = 1): Json => {
  if (usage === null) return {};
  const { input, output } = usage ?? ZOO_USAGE;
  const candidatesTokenCount = Math.round(output * share);
  const counts = { promptTokenCount: input, candidatesTokenCount };
  return { usageMetadata: { ...counts, totalTokenCount: input + candidatesTokenCount } };
};

const responseOf = (parts: readonly Json[], more: Json = {}): Json => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
  ...{ modelVersion: 'gemini-3-pro-001', responseId: 'zoo' },
});

const reasonOf = ({ end }: ZooReply): Json => ({
  finishReason: end === undefined ? 'STOP' : REASONS[end],
});

/** Each event has a running total of the usage. */
const streamOf = (reply: ZooReply): string[] => [
  ...partsOf(reply).map((part) => event({ ...responseOf([part]), ...usageOf(reply, 0.5) })),
  event({ ...responseOf([{ text: '' }], reasonOf(reply)), ...usageOf(reply) }),
];

const error = (code: number, status: string, message: string, details: readonly Json[] = []): Json => ({
  error: { code, message, status, ...(details.length === 0 ? {} : { details }) },
});

const KEY_INFO = {
  ...{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' },
  domain: 'googleapis.com',
};

const REFUSALS: Readonly<Record<Problem, Refusal | undefined>> = {
  'wrong key': {
    status: 400,
    body: error(400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.', [KEY_INFO]),
  },
  'no credit': undefined,
  'unknown model': {
    status: 404,
    body: error(404, 'NOT_FOUND', 'models/zoo is not found for API version v1beta.'),
  },
  'unsupported parameter': {
    status: 400,
    body: error(
      400,
      'INVALID_ARGUMENT',
      'Invalid JSON payload received. Unknown name "seed": Cannot find field.',
    ),
  },
  'context too long': {
    status: 400,
    body: error(
      400,
      'INVALID_ARGUMENT',
      'The input token count (1048577) exceeds the maximum number of tokens.',
    ),
  },
  'too many requests': {
    status: 429,
    body: error(429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota.', [
      { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '2s' },
    ]),
  },
  overloaded: {
    status: 503,
    body: error(503, 'UNAVAILABLE', 'The model is overloaded. Please try again later.'),
  },
};

/** Describes Gemini's own API. */
export const geminiServer = (server: Pick<ZooServer, 'name' | 'path' | 'model' | 'sources'>): ZooServer => ({
  ...server,
  kind: 'gemini',
  format: 'gemini',
  stream: streamOf,
  whole: (reply) => ({ ...responseOf(partsOf(reply), reasonOf(reply)), ...usageOf(reply) }),
  refuse: (problem) => REFUSALS[problem],
  broken: (message) => event(error(503, 'UNAVAILABLE', message)),
  keepAlive: ': keep-alive\r\n\r\n',
  shows: { thought: true, noUsage: true, parallel: true, objects: true, filter: true, argumentText: false },
});
