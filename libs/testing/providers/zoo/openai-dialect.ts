import {
  ZOO_USAGE,
  type Problem,
  type Refusal,
  type ZooCall,
  type ZooReply,
  type ZooServer,
} from './reply.js';

type Json = Record<string, unknown>;

/** Ways in which servers of OpenAI's format differ. */
export interface OpenAiQuirks {
  /** Chunks before the first of the answer. */
  readonly opening?: readonly Json[];
  /** Chunks between the answer and its usage. */
  readonly closing?: readonly Json[];
  /** Fields of every chunk. */
  readonly more?: Json;
  readonly thought?: 'reasoning_content' | 'reasoning' | 'reasoning_details' | 'content-list';
  /** `count`: each call has its number. `zero`: all have 0. `none`: the field is absent. */
  readonly index?: 'count' | 'zero' | 'none';
  /** True: a call comes in one piece. */
  readonly wholeCalls?: boolean;
  readonly callId?: (number: number) => string;
  readonly finish?: Partial<Record<'calls' | 'length' | 'filter', string>>;
  readonly usageAt?: 'end' | 'last-chunk' | 'choice' | 'every-chunk' | 'groq';
  readonly usage?: (input: number, output: number) => Json;
}

const totals = (input: number, output: number): Json => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
});

const event = (data: unknown): string =>
  `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;

const piecesOf = ({ json }: ZooCall): readonly unknown[] => (Array.isArray(json) ? json : [json]);

const joined = (call: ZooCall): unknown => {
  const pieces = piecesOf(call);
  return pieces.every((piece) => typeof piece === 'string') ? pieces.join('') : pieces[0];
};

const thoughtDelta = (form: OpenAiQuirks['thought'], text: string): Json => {
  switch (form) {
    case 'reasoning':
      return { reasoning: text };
    case 'reasoning_details':
      return { reasoning: text, reasoning_details: [{ type: 'reasoning.text', text, index: 0 }] };
    case 'content-list':
      return { content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }] };
    default:
      return { reasoning_content: text };
  }
};

const callDeltas = (reply: ZooReply, quirks: OpenAiQuirks): Json[] =>
  (reply.calls ?? []).flatMap((call, number) => {
    const { index = 'count', wholeCalls = false, callId = (n: number) => `call_${n}` } = quirks;
    const place = index === 'none' ? {} : { index: index === 'zero' ? 0 : number };
    const head = { ...place, id: call.id ?? callId(number), type: 'function' };
    if (wholeCalls)
      return [{ tool_calls: [{ ...head, function: { name: call.name, arguments: joined(call) } }] }];
    return [
      { tool_calls: [{ ...head, function: { name: call.name, arguments: '' } }] },
      ...piecesOf(call).map((piece) => ({ tool_calls: [{ ...place, function: { arguments: piece } }] })),
    ];
  });

const finishOf = (reply: ZooReply, { finish = {} }: OpenAiQuirks): string => {
  if (reply.end === 'length') return finish.length ?? 'length';
  if (reply.end === 'filter') return finish.filter ?? 'content_filter';
  return (reply.calls?.length ?? 0) > 0 ? (finish.calls ?? 'tool_calls') : 'stop';
};

const usageOf = (reply: ZooReply, { usage = totals }: OpenAiQuirks): Json | null => {
  const { input, output } = reply.usage ?? ZOO_USAGE;
  return reply.usage === null ? null : usage(input, output);
};

/** Fields that carry the usage, by the place where the server puts it. */
const usagePlaces = (usage: Json | null, at: NonNullable<OpenAiQuirks['usageAt']>) => {
  const fieldsAt = (place: typeof at, fields: Json): Json => (usage && at === place ? fields : {});
  return {
    inEveryChunk: fieldsAt('every-chunk', { usage }),
    inChoice: fieldsAt('choice', { usage }),
    inLast: { ...fieldsAt('last-chunk', { usage }), ...fieldsAt('groq', { x_groq: { usage } }) },
    ownChunk: usage && at === 'end' ? [{ choices: [], usage }] : [],
  };
};

/** Returns the chunks of a stream, without their framing. */
const chunksOf = (model: string, reply: ZooReply, quirks: OpenAiQuirks): Json[] => {
  const { opening = [], closing = [], more = {}, usageAt = 'end', thought } = quirks;
  const places = usagePlaces(usageOf(reply, quirks), usageAt);
  const head = { id: 'zoo-1', object: 'chat.completion.chunk', created: 1, model, ...more };
  const chunk = (delta: Json, finish_reason: string | null = null, inChoice: Json = {}): Json => ({
    ...{ ...head, ...places.inEveryChunk },
    choices: [{ index: 0, delta, finish_reason, ...inChoice }],
  });
  const content = (text: string): Json =>
    thought === 'content-list' ? { content: [{ type: 'text', text }] } : { content: text };
  return [
    ...opening,
    chunk({ role: 'assistant', content: '' }),
    ...(reply.thought ?? []).map((text) => chunk(thoughtDelta(thought, text))),
    ...(reply.text ?? []).map((text) => chunk(content(text))),
    ...callDeltas(reply, quirks).map((delta) => chunk(delta)),
    ...closing,
    { ...chunk({}, finishOf(reply, quirks), places.inChoice), ...places.inLast },
    ...places.ownChunk.map((own) => ({ ...head, ...own })),
  ];
};

const streamOf = (model: string, reply: ZooReply, quirks: OpenAiQuirks): string[] =>
  [...chunksOf(model, reply, quirks), '[DONE]'].map(event);

const wholeOf = (model: string, reply: ZooReply, quirks: OpenAiQuirks): Json => {
  const { callId = (n: number) => `call_${n}` } = quirks;
  const usage = usageOf(reply, quirks);
  const tool_calls = (reply.calls ?? []).map((call, number) => ({
    id: call.id ?? callId(number),
    type: 'function',
    function: { name: call.name, arguments: joined(call) },
  }));
  const message = {
    role: 'assistant',
    content: reply.text?.join('') ?? null,
    ...(tool_calls.length > 0 ? { tool_calls } : {}),
  };
  return {
    ...{ id: 'zoo-1', object: 'chat.completion', created: 1, model },
    choices: [{ index: 0, message, finish_reason: finishOf(reply, quirks) }],
    ...(usage ? { usage } : {}),
  };
};

/** An error in OpenAI's form. */
export const openAiError = (message: string, code: unknown = null, type = 'invalid_request_error'): Json => ({
  error: { message, type, param: null, code },
});

/** Refusals of OpenAI. Servers that imitate it change some of them. */
export const OPENAI_REFUSALS: Readonly<Record<Problem, Refusal | undefined>> = {
  'wrong key': { status: 401, body: openAiError('Incorrect API key provided: sk-x.', 'invalid_api_key') },
  'no credit': {
    status: 429,
    body: openAiError('You exceeded your current quota.', 'insufficient_quota', 'insufficient_quota'),
  },
  'unknown model': { status: 404, body: openAiError('The model `zoo` does not exist.', 'model_not_found') },
  'unsupported parameter': {
    status: 400,
    body: openAiError(
      "Unsupported parameter: 'seed' is not supported with this model.",
      'unsupported_parameter',
    ),
  },
  'context too long': {
    status: 400,
    body: openAiError('This model has a maximum context length of 8192 tokens.', 'context_length_exceeded'),
  },
  'too many requests': {
    status: 429,
    body: openAiError('Rate limit reached for requests.', 'rate_limit_exceeded', 'requests'),
    headers: { 'retry-after': '2' },
  },
  overloaded: { status: 503, body: openAiError('The engine is currently overloaded.', null, 'server_error') },
};

type Described = Pick<ZooServer, 'name' | 'kind' | 'path' | 'model' | 'sources'> & {
  readonly quirks?: OpenAiQuirks;
  readonly refusals?: Partial<Record<Problem, Refusal | undefined>>;
  readonly broken?: ZooServer['broken'];
  readonly keepAlive?: string;
  readonly lacks?: readonly (keyof ZooServer['shows'])[];
  readonly objects?: boolean;
};

/** Describes a server of OpenAI's format by what differs from OpenAI. */
export const openAiServer = ({ quirks = {}, refusals = {}, lacks = [], ...server }: Described): ZooServer => {
  const all = { ...OPENAI_REFUSALS, ...refusals };
  return {
    ...{
      name: server.name,
      kind: server.kind,
      path: server.path,
      model: server.model,
      sources: server.sources,
    },
    format: 'openai',
    stream: (reply) => streamOf(server.model, reply, quirks),
    whole: (reply) => wholeOf(server.model, reply, quirks),
    refuse: (problem) => all[problem],
    broken: server.broken ?? ((message) => event(openAiError(message, 500, 'server_error'))),
    keepAlive: server.keepAlive ?? ': keep-alive\n\n',
    shows: {
      thought: !lacks.includes('thought'),
      noUsage: !lacks.includes('noUsage'),
      parallel: !lacks.includes('parallel'),
      objects: server.objects ?? false,
      filter: !lacks.includes('filter'),
      argumentText: true,
    },
  };
};
