import type { Attributes, AttributeValue } from '@opentelemetry/api';

/**
 * Attributes that a span may have; all others are dropped before the export (docs/adr/0062). Values
 * are our own names, ids, codes and numbers, never text of a person or a model.
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
  'gen_ai.usage.cache_read.input_tokens',
  'gen_ai.usage.cache_creation.input_tokens',
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

/** Attributes of a span; undefined ones are left out. */
export type SpanAttributes = Partial<Readonly<Record<SpanAttribute, AttributeValue | undefined>>>;

const ALLOWED: ReadonlySet<string> = new Set(SPAN_ATTRIBUTES);
/** Maximum length of an attribute: longer than any id, name or code. */
export const MAX_ATTRIBUTE_CHARS = 200;

/** Returns the allowed attributes: the same object where all are allowed. */
export const allowedAttributes = (attributes: Attributes): Attributes =>
  Object.keys(attributes).every((name) => ALLOWED.has(name))
    ? attributes
    : Object.fromEntries(Object.entries(attributes).filter(([name]) => ALLOWED.has(name)));
