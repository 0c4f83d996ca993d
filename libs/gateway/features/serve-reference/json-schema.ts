import { z } from 'zod';
import type { JsonObject, JsonValue } from '@antiphon/kernel';

/** zod tells "any JSON" by definitions that refer to each other from the document's root, which is not this schema's. */
const withoutRefs = (value: JsonValue): JsonValue => {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(withoutRefs);
  if ('$ref' in value) return {};
  const entries = Object.entries(value).filter(([key]) => key !== '$defs' && key !== '$schema');
  return Object.fromEntries(entries.map(([key, inner]) => [key, withoutRefs(inner as JsonValue)]));
};

/** The JSON Schema (2020-12) of what a caller may send, or of what it gets. */
export const jsonSchemaOf = (schema: z.ZodType, io: 'input' | 'output'): JsonObject =>
  // What JSON cannot say (a transformed value) is told as "anything": the contract's own check is stricter.
  withoutRefs(z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as JsonObject) as JsonObject;
