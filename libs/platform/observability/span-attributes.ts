import type { Attributes, AttributeValue } from '@opentelemetry/api';

/**
 * Every attribute that a span of ours may carry; whatever is not here is dropped before it is exported, whoever set
 * it (docs/adr/0062). Values are names of ours, ids, codes and numbers: never what a person or a model has written.
 */
export const SPAN_ATTRIBUTES = [
  'gen_ai.operation.name',
  'gen_ai.provider.name',
  'gen_ai.agent.id',
  'gen_ai.conversation.id',
  'gen_ai.request.model',
  'gen_ai.request.max_tokens',
  'gen_ai.response.model',
  'gen_ai.response.finish_reasons',
  'gen_ai.usage.input_tokens',
  'gen_ai.usage.output_tokens',
  'gen_ai.tool.name',
  'gen_ai.tool.type',
  'gen_ai.tool.call.id',
  'rpc.system.name',
  'rpc.method',
  'http.request.method',
  'http.route',
  'http.response.status_code',
  'messaging.system',
  'messaging.operation.type',
  'messaging.destination.name',
  'messaging.consumer.group.name',
  'db.system.name',
  'db.operation.name',
  'db.operation.batch.size',
  'error.type',
  'antiphon.workspace',
  'antiphon.request.id',
  'antiphon.turn.id',
  'antiphon.turn.status',
  'antiphon.attempt',
  'antiphon.usage.estimated',
  'antiphon.granted',
  'antiphon.run.id',
  'antiphon.task.id',
  'antiphon.workflow.id',
] as const;
export type SpanAttribute = (typeof SPAN_ATTRIBUTES)[number];

/** What a span says of itself; what is undefined is left out. */
export type SpanAttributes = Partial<Readonly<Record<SpanAttribute, AttributeValue | undefined>>>;

const ALLOWED: ReadonlySet<string> = new Set(SPAN_ATTRIBUTES);
/** Longer than any id, name or code: what is cut was none. */
export const MAX_ATTRIBUTE_CHARS = 200;

/** The allowed part of what a span carries: most often all of it, and then the very same object. */
export const allowedAttributes = (attributes: Attributes): Attributes =>
  Object.keys(attributes).every((name) => ALLOWED.has(name))
    ? attributes
    : Object.fromEntries(Object.entries(attributes).filter(([name]) => ALLOWED.has(name)));
