import {
  ZOO_USAGE,
  type Problem,
  type Refusal,
  type ZooCall,
  type ZooReply,
  type ZooServer,
} from './reply.js';

type Json = Record<string, unknown>;

/** Ways in which servers of Anthropic's format differ. */
export interface AnthropicQuirks {
  /** True: thinking comes without a signature. */
  readonly unsigned?: boolean;
  /** True: `message_start` reports 0 tokens, and the end has both counts. */
  readonly usageAtEnd?: boolean;
  /** Fields of `message_stop`. */
  readonly stop?: Json;
  /** False: no `ping` comes. */
  readonly ping?: boolean;
}

const event = (data: Json): string => `event: ${String(data['type'])}\ndata: ${JSON.stringify(data)}\n\n`;

const block = (index: number, start: Json, deltas: readonly Json[]): Json[] => [
  { type: 'content_block_start', index, content_block: start },
  ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
  { type: 'content_block_stop', index },
];

const jsonPieces = ({ json }: ZooCall): readonly string[] =>
  Array.isArray(json) ? (json as readonly string[]) : [JSON.stringify(json)];

const blocksOf = (reply: ZooReply, { unsigned = false }: AnthropicQuirks): Json[] => {
  const signature = unsigned ? [] : [{ type: 'signature_delta', signature: 'c2lnbmVk' }];
  const thinking = (reply.thought ?? []).map((text) => ({ type: 'thinking_delta', thinking: text }));
  const parts: [Json, Json[]][] = [
    ...(reply.thought ? [[{ type: 'thinking', thinking: '' }, [...thinking, ...signature]]] : []),
    ...(reply.text
      ? [[{ type: 'text', text: '' }, reply.text.map((text) => ({ type: 'text_delta', text }))]]
      : []),
    ...(reply.calls ?? []).map((call, number) => [
      { type: 'tool_use', id: call.id ?? `toolu_${number}`, name: call.name, input: {} },
      jsonPieces(call).map((partial_json) => ({ type: 'input_json_delta', partial_json })),
    ]),
  ] as unknown as [Json, Json[]][];
  return parts.flatMap(([start, deltas], index) => block(index, start, deltas));
};

const stopOf = (reply: ZooReply): string => {
  if (reply.end === 'length') return 'max_tokens';
  if (reply.end === 'filter') return 'refusal';
  return (reply.calls?.length ?? 0) > 0 ? 'tool_use' : 'end_turn';
};

const countsOf = ({ usage }: ZooReply): { readonly input: number; readonly output: number } | null =>
  usage === null ? null : (usage ?? ZOO_USAGE);

const streamOf = (model: string, reply: ZooReply, quirks: AnthropicQuirks): string[] => {
  const usage = countsOf(reply);
  const atStart = usage && { input_tokens: quirks.usageAtEnd ? 0 : usage.input, output_tokens: 1 };
  const atEnd = usage && {
    output_tokens: usage.output,
    ...(quirks.usageAtEnd ? { input_tokens: usage.input } : {}),
  };
  const message = {
    ...{ id: 'msg_zoo', type: 'message', role: 'assistant', model, content: [] },
    ...{ stop_reason: null, stop_sequence: null, ...(atStart ? { usage: atStart } : {}) },
  };
  const delta = { stop_reason: stopOf(reply), stop_sequence: null };
  return [
    { type: 'message_start', message },
    ...(quirks.ping === false ? [] : [{ type: 'ping' }]),
    ...blocksOf(reply, quirks),
    { type: 'message_delta', delta, ...(atEnd ? { usage: atEnd } : {}) },
    { type: 'message_stop', ...quirks.stop },
  ].map(event);
};

const wholeOf = (model: string, reply: ZooReply): Json => {
  const usage = countsOf(reply);
  return {
    ...{ id: 'msg_zoo', type: 'message', role: 'assistant', model },
    content: [
      ...(reply.text ? [{ type: 'text', text: reply.text.join('') }] : []),
      ...(reply.calls ?? []).map((call, number) => ({
        ...{ type: 'tool_use', id: call.id ?? `toolu_${number}`, name: call.name },
        input: JSON.parse(jsonPieces(call).join('') || '{}') as unknown,
      })),
    ],
    stop_reason: stopOf(reply),
    ...(usage ? { usage: { input_tokens: usage.input, output_tokens: usage.output } } : {}),
  };
};

const error = (type: string, message: string): Json => ({ type: 'error', error: { type, message } });

const REFUSALS: Readonly<Record<Problem, Refusal | undefined>> = {
  'wrong key': { status: 401, body: error('authentication_error', 'invalid x-api-key') },
  'no credit': {
    status: 400,
    body: error('invalid_request_error', 'Your credit balance is too low to access the Anthropic API.'),
  },
  'unknown model': { status: 404, body: error('not_found_error', 'model: zoo') },
  'unsupported parameter': {
    status: 400,
    body: error('invalid_request_error', 'seed: Extra inputs are not permitted'),
  },
  'context too long': {
    status: 400,
    body: error('invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum'),
  },
  'too many requests': {
    status: 429,
    body: error('rate_limit_error', 'This request would exceed your rate limit.'),
    headers: { 'retry-after': '2' },
  },
  overloaded: { status: 529, body: error('overloaded_error', 'Overloaded') },
};

type Described = Pick<ZooServer, 'name' | 'path' | 'model' | 'sources'> & {
  readonly quirks?: AnthropicQuirks;
  readonly refusals?: Partial<Record<Problem, Refusal | undefined>>;
};

/** Describes a server of Anthropic's format by what differs from Anthropic. */
export const anthropicServer = ({ quirks = {}, refusals = {}, ...server }: Described): ZooServer => {
  const all = { ...REFUSALS, ...refusals };
  return {
    ...server,
    kind: 'anthropic',
    format: 'anthropic',
    stream: (reply) => streamOf(server.model, reply, quirks),
    whole: (reply) => wholeOf(server.model, reply),
    refuse: (problem) => all[problem],
    broken: (message) => event(error('overloaded_error', message)),
    keepAlive: event({ type: 'ping' }),
    shows: { thought: true, noUsage: true, parallel: true, objects: false, filter: true, argumentText: true },
  };
};
