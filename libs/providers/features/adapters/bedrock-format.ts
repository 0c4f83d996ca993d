import { fieldsOf, listOf, textOf } from '../transport/answer-builder.js';
import type { Fields } from '../transport/answer-builder.js';

// Bedrock's Converse API has the parts of Anthropic's Messages under other names. So requests are
// written and answers are read as Messages, and converted here.
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html

const CACHE_POINT: Fields = { cachePoint: { type: 'default' } };

/** Returns a part, and the point after it up to which the vendor is asked to cache. */
const withCache = (block: Fields, part: Fields): Fields[] =>
  'cache_control' in block ? [part, CACHE_POINT] : [part];

const contentOf = (content: unknown): readonly Fields[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : (listOf(content) as readonly Fields[]);

/** Characters that the name of a document may have. */
const NAME = /[^A-Za-z0-9 ()[\]-]+/g;

/** https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_DocumentBlock.html */
const toFile = (block: Fields): Fields => {
  const source = fieldsOf(block['source']) ?? {};
  const format = textOf(source['media_type']).replace(/^.*\//, '');
  const bytes = { format, source: { bytes: source['data'] } };
  if (block['type'] === 'image') return { image: bytes };
  const name = textOf(block['title']).replace(NAME, '-').slice(-200) || 'document';
  return { document: { ...bytes, name } };
};

const toPart = (block: Fields): Fields => {
  switch (block['type']) {
    case 'tool_use':
      return { toolUse: { toolUseId: block['id'], name: block['name'], input: block['input'] } };
    case 'tool_result': {
      const content = contentOf(block['content']).map(({ text }) => ({ text }));
      const status = block['is_error'] === true ? 'error' : 'success';
      return { toolResult: { toolUseId: block['tool_use_id'], content, status } };
    }
    case 'image':
    case 'document':
      return toFile(block);
    case 'thinking': {
      const { thinking: text, signature } = block;
      return { reasoningContent: { reasoningText: { text, ...(signature ? { signature } : {}) } } };
    }
    case 'redacted_thinking':
      return { reasoningContent: { redactedContent: block['data'] } };
    default:
      return { text: block['text'] };
  }
};

const toTool = (tool: Fields): Fields[] => {
  const { name, description, input_schema: json } = tool;
  // The vendor refuses an empty description.
  const described = textOf(description) === '' ? {} : { description };
  return withCache(tool, { toolSpec: { name, ...described, inputSchema: { json } } });
};

/** Renders the part of a request that its prompt determines, from the same in Anthropic's format. */
export const toConverse = ({ messages, system, tools }: Fields): Fields => ({
  messages: listOf(messages).map((message) => {
    const { role, content } = message as Fields;
    return { role, content: contentOf(content).flatMap((block) => withCache(block, toPart(block))) };
  }),
  ...(system === undefined
    ? {}
    : { system: contentOf(system).flatMap((block) => withCache(block, { text: block['text'] })) }),
  ...(tools === undefined
    ? {}
    : { toolConfig: { tools: listOf(tools).flatMap((tool) => toTool(tool as Fields)) } }),
});

/** Returns the fields of a request that its prompt does not determine. */
export const converseFields = ({ max_tokens: maxTokens, temperature, ...rest }: Fields): Fields => {
  const more = Object.fromEntries(
    Object.entries(rest).filter(([name]) => name === 'thinking' || name === 'output_config'),
  );
  return {
    inferenceConfig: { maxTokens, ...(temperature === undefined ? {} : { temperature }) },
    ...(Object.keys(more).length === 0 ? {} : { additionalModelRequestFields: more }),
  };
};

/** Reasons whose name or meaning differs. Others are the same. */
const STOP_REASONS: Readonly<Record<string, string>> = {
  guardrail_intervened: 'refusal',
  content_filtered: 'refusal',
};

const stopOf = (reason: unknown): string => {
  const text = textOf(reason);
  return Object.hasOwn(STOP_REASONS, text) ? (STOP_REASONS[text] ?? text) : text;
};

const toUsage = (value: unknown): Fields | undefined => {
  const usage = fieldsOf(value);
  return (
    usage && {
      input_tokens: usage['inputTokens'],
      output_tokens: usage['outputTokens'],
      cache_read_input_tokens: usage['cacheReadInputTokens'],
      cache_creation_input_tokens: usage['cacheWriteInputTokens'],
    }
  );
};

const toDelta = (value: unknown): Fields | null => {
  const delta = fieldsOf(value);
  const tool = fieldsOf(delta?.['toolUse']);
  const reasoning = fieldsOf(delta?.['reasoningContent']);
  if (tool) return { type: 'input_json_delta', partial_json: tool['input'] };
  if (typeof delta?.['text'] === 'string') return { type: 'text_delta', text: delta['text'] };
  if (typeof reasoning?.['text'] === 'string') return { type: 'thinking_delta', thinking: reasoning['text'] };
  if (typeof reasoning?.['signature'] === 'string')
    return { type: 'signature_delta', signature: reasoning['signature'] };
  return null;
};

/** Converts an event of a stream to those of Anthropic's format. Unknown ones are left out. */
export const fromStream = (name: string, value: unknown): readonly Fields[] => {
  const event = fieldsOf(value) ?? {};
  const index = event['contentBlockIndex'];
  switch (name) {
    case 'contentBlockStart': {
      const tool = fieldsOf(fieldsOf(event['start'])?.['toolUse']);
      const block = tool && { type: 'tool_use', id: tool['toolUseId'], name: tool['name'] };
      return block ? [{ type: 'content_block_start', index, content_block: block }] : [];
    }
    case 'contentBlockDelta': {
      const redacted = fieldsOf(fieldsOf(event['delta'])?.['reasoningContent'])?.['redactedContent'];
      if (typeof redacted === 'string')
        return [
          {
            ...{ type: 'content_block_start', index },
            content_block: { type: 'redacted_thinking', data: redacted },
          },
        ];
      const delta = toDelta(event['delta']);
      return delta ? [{ type: 'content_block_delta', index, delta }] : [];
    }
    case 'contentBlockStop':
      return [{ type: 'content_block_stop', index }];
    case 'messageStop':
      return [
        { type: 'message_delta', delta: { stop_reason: stopOf(event['stopReason']) } },
        { type: 'message_stop' },
      ];
    case 'metadata':
      return [{ type: 'message_delta', usage: toUsage(event['usage']) }];
    default:
      return [];
  }
};

const fromPart = (value: unknown): Fields => {
  const part = fieldsOf(value) ?? {};
  const tool = fieldsOf(part['toolUse']);
  const reasoning = fieldsOf(part['reasoningContent']);
  const text = fieldsOf(reasoning?.['reasoningText']);
  if (tool) return { type: 'tool_use', id: tool['toolUseId'], name: tool['name'], input: tool['input'] };
  if (text) return { type: 'thinking', thinking: text['text'], signature: text['signature'] };
  if (reasoning) return { type: 'redacted_thinking', data: reasoning['redactedContent'] };
  return { type: 'text', text: part['text'] };
};

/** Converts a whole answer to a message of Anthropic's format. */
export const fromWhole = (value: unknown): Fields | undefined => {
  const answer = fieldsOf(value);
  const message = fieldsOf(fieldsOf(answer?.['output'])?.['message']);
  if (!answer || !Array.isArray(message?.['content'])) return undefined;
  return {
    content: message['content'].map(fromPart),
    stop_reason: stopOf(answer['stopReason']),
    usage: toUsage(answer['usage']),
  };
};
