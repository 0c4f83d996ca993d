import { findMethod } from '@antiphon/contracts/reference';
import type { JsonObject, JsonValue } from '@antiphon/kernel';
import { z } from 'zod';

/** Types that have another name than their method. */
const METHOD_OF_TYPE: Readonly<Record<string, string>> = { agent_spawn_request: 'agent.spawn' };
/** Fields of a typed frame that are not params. */
const OWN_FIELDS: ReadonlySet<string> = new Set(['type', 'id', 'jsonrpc', 'traceparent']);

const findByType = (type: string): ReturnType<typeof findMethod> =>
  findMethod((Object.hasOwn(METHOD_OF_TYPE, type) ? METHOD_OF_TYPE[type] : type) ?? '');

/** Methods by which a client chooses its frames itself. */
const OWN_CHOICE: ReadonlySet<string> = new Set(['connect', 'agent.subscribe', 'agent.unsubscribe']);

/** Returns true for a typed frame of a known type, whose sender understands typed frames. */
export const isTypedFrame = (value: JsonValue): boolean => {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return false;
  const { type, method } = value as JsonObject;
  if (typeof type !== 'string' || method !== undefined || OWN_CHOICE.has(type)) return false;
  return findByType(type) !== undefined;
};

/** Returns the names of the fields of a schema, null for one that accepts any. */
const fieldsOf = (schema: z.ZodType): ReadonlySet<string> | null => {
  if (schema instanceof z.ZodObject) return new Set(Object.keys(schema.shape));
  if (!(schema instanceof z.ZodUnion)) return null;
  const options = (schema.options as z.ZodType[]).map(fieldsOf);
  return options.includes(null) ? null : new Set(options.flatMap((fields) => [...(fields ?? [])]));
};

/**
 * Turns a typed frame `{"type":"chat.send",…}` into the request of the method of that name. Unknown
 * fields are ignored. Returns undefined for an unknown type, and any other frame as it is.
 */
export const fromTyped = (value: JsonValue): JsonValue | undefined => {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
  const { type, id, traceparent, method } = value as JsonObject;
  if (typeof type !== 'string' || method !== undefined) return value;
  const found = findByType(type);
  if (!found) return undefined;
  const fields = fieldsOf(found.params);
  const params = Object.fromEntries(
    Object.entries(value).filter(([key]) => !OWN_FIELDS.has(key) && (fields?.has(key) ?? true)),
  );
  return {
    ...(id === undefined ? {} : { id }),
    ...(traceparent === undefined ? {} : { traceparent }),
    method: found.name,
    params,
  };
};
