import { z } from 'zod';
import type { JsonObject, JsonValue } from '@antiphon/kernel';

/**
 * Removes references: zod describes "any JSON" by definitions at the root of a document, which this
 * schema is not.
 */
const withoutRefs = (value: JsonValue): JsonValue => {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(withoutRefs);
  if ('$ref' in value) return {};
  const entries = Object.entries(value).filter(([key]) => key !== '$defs' && key !== '$schema');
  return Object.fromEntries(entries.map(([key, inner]) => [key, withoutRefs(inner as JsonValue)]));
};

/**
 * Returns the JSON Schema (2020-12) of a value that a client sends (`input`) or receives
 * (`output`). A value that JSON Schema cannot describe, such as a transformed one, becomes
 * "anything"; the contract itself is stricter.
 */
export const jsonSchemaOf = (schema: z.ZodType, io: 'input' | 'output'): JsonObject =>
  withoutRefs(z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as JsonObject) as JsonObject;
