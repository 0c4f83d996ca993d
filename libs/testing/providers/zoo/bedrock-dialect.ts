import { crc32 } from 'node:zlib';
import {
  ZOO_USAGE,
  type Problem,
  type Refusal,
  type ZooCall,
  type ZooReply,
  type ZooServer,
} from './reply.js';

type Json = Record<string, unknown>;

const STRING = 7;

const header = (name: string, value: string): Buffer => {
  const [key, text] = [Buffer.from(name), Buffer.from(value)];
  const head = Buffer.from([key.length, ...key, STRING, 0, 0]);
  head.writeUInt16BE(text.length, head.length - 2);
  return Buffer.concat([head, text]);
};

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

/**
 * Encodes a binary message of an event stream, one character for each byte.
 * https://docs.aws.amazon.com/transcribe/latest/dg/streaming-setting-up.html#streaming-event-stream
 */
const message = (kind: 'event' | 'exception', name: string, payload: Json): string => {
  const headers = Buffer.concat([
    header(`:${kind}-type`, name),
    header(':content-type', 'application/json'),
    header(':message-type', kind),
  ]);
  const body = Buffer.from(JSON.stringify(payload));
  const prelude = Buffer.concat([uint32(headers.length + body.length + 16), uint32(headers.length)]);
  const checked = Buffer.concat([prelude, uint32(crc32(prelude)), headers, body]);
  return Buffer.concat([checked, uint32(crc32(checked))]).toString('latin1');
};

const jsonPieces = ({ json }: ZooCall): readonly string[] =>
  Array.isArray(json) ? (json as readonly string[]) : [JSON.stringify(json)];

/** Only a block of a tool has a start. Padding hides the length of each piece. */
const block = (index: number, start: Json | null, deltas: readonly Json[]): string[] => [
  ...(start ? [message('event', 'contentBlockStart', { contentBlockIndex: index, start })] : []),
  ...deltas.map((delta) =>
    message('event', 'contentBlockDelta', { contentBlockIndex: index, delta, p: 'abcdef' }),
  ),
  message('event', 'contentBlockStop', { contentBlockIndex: index, p: 'ab' }),
];

const stopOf = ({ end, calls = [] }: ZooReply): string => {
  if (end === 'length') return 'max_tokens';
  if (end === 'filter') return 'guardrail_intervened';
  return calls.length > 0 ? 'tool_use' : 'end_turn';
};

const usageOf = ({ usage }: ZooReply): Json => {
  if (usage === null) return {};
  const { input, output } = usage ?? ZOO_USAGE;
  return { usage: { inputTokens: input, outputTokens: output, totalTokens: input + output } };
};

const toolOf = (call: ZooCall, number: number): Json => ({
  toolUseId: call.id ?? `tooluse_${number}`,
  name: call.name,
});

const streamOf = (reply: ZooReply): string[] => {
  const { thought, text, calls = [] } = reply;
  const reasoning = (part: Json): Json => ({ reasoningContent: part });
  const blocks: [Json | null, Json[]][] = [
    ...(thought
      ? [[null, [...thought.map((part) => reasoning({ text: part })), reasoning({ signature: 'c2lnbmVk' })]]]
      : []),
    ...(text ? [[null, text.map((part) => ({ text: part }))]] : []),
    ...calls.map((call, number) => [
      { toolUse: toolOf(call, number) },
      jsonPieces(call).map((input) => ({ toolUse: { input } })),
    ]),
  ] as [Json | null, Json[]][];
  return [
    message('event', 'messageStart', { role: 'assistant', p: 'abc' }),
    ...blocks.flatMap(([start, deltas], index) => block(index, start, deltas)),
    message('event', 'messageStop', { stopReason: stopOf(reply), p: 'abcd' }),
    message('event', 'metadata', { metrics: { latencyMs: 12 }, p: 'a', ...usageOf(reply) }),
  ];
};

const wholeOf = (reply: ZooReply): Json => ({
  output: {
    message: {
      role: 'assistant',
      content: [
        ...(reply.text ? [{ text: reply.text.join('') }] : []),
        ...(reply.calls ?? []).map((call, number) => ({
          toolUse: {
            ...toolOf(call, number),
            input: JSON.parse(jsonPieces(call).join('') || '{}') as unknown,
          },
        })),
      ],
    },
  },
  stopReason: stopOf(reply),
  metrics: { latencyMs: 12 },
  ...usageOf(reply),
});

const refusal = (status: number, type: string, text: string): Refusal => ({
  status,
  body: { message: text },
  headers: { 'x-amzn-errortype': `${type}:http://internal.amazon.com/coral/` },
});

const REFUSALS: Readonly<Record<Problem, Refusal | undefined>> = {
  'wrong key': refusal(
    403,
    'UnrecognizedClientException',
    'The security token included in the request is invalid.',
  ),
  'no credit': undefined,
  'unknown model': refusal(400, 'ValidationException', 'The provided model identifier is invalid.'),
  'unsupported parameter': refusal(
    400,
    'ValidationException',
    'The model returned the following errors: seed: Extra inputs are not permitted',
  ),
  'context too long': refusal(400, 'ValidationException', 'Input is too long for requested model.'),
  'too many requests': refusal(
    429,
    'ThrottlingException',
    'Too many requests, please wait before trying again.',
  ),
  overloaded: refusal(503, 'ServiceUnavailableException', 'Bedrock is unable to process your request.'),
};

/** Describes Bedrock's Converse API. */
export const bedrockServer = (server: Pick<ZooServer, 'name' | 'path' | 'model' | 'sources'>): ZooServer => ({
  ...server,
  kind: 'bedrock',
  format: 'bedrock',
  binaryMedia: 'application/vnd.amazon.eventstream',
  stream: streamOf,
  whole: wholeOf,
  refuse: (problem) => REFUSALS[problem],
  broken: (text) => message('exception', 'serviceUnavailableException', { message: text }),
  keepAlive: '',
  shows: { thought: true, noUsage: true, parallel: true, objects: false, filter: true, argumentText: true },
});
