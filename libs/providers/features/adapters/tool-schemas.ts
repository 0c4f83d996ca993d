import type { ModelParameters } from '@antiphon/config';
import type { ModelTool } from '@antiphon/providers-domain';
import type { JsonObject, JsonValue } from '@antiphon/kernel';

/** Keywords of JSON Schema that every server of tools takes. */
const PLAIN = new Set(['type', 'description', 'enum', 'required', 'properties', 'items']);
/** Keywords that vendors refuse at the top of a tool's schema. */
const NOT_AT_TOP = new Set(['anyOf', 'oneOf', 'allOf', 'not', 'enum', 'const', '$schema']);

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const asObject = (value: JsonValue | undefined): JsonObject => (isObject(value) ? value : {});

/** Returns the first type that is not null: a list of types is a keyword that many refuse. */
const oneType = (type: JsonValue): JsonValue =>
  Array.isArray(type) ? (type.find((one) => one !== 'null') ?? 'string') : type;

const variantsOf = ({ anyOf, oneOf, allOf }: JsonObject): JsonObject[] =>
  [anyOf, oneOf, allOf].flatMap((list) => (Array.isArray(list) ? list.filter(isObject) : []));

const mapValues = (object: JsonObject, change: (value: JsonValue) => JsonValue): JsonObject =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));

/** Reduces a schema to its plain keywords. Of alternatives, the first that is not null is left. */
const toPlain = (schema: JsonValue): JsonObject => {
  const given = asObject(schema);
  const variant = variantsOf(given).find(({ type }) => type !== 'null') ?? {};
  const merged: JsonObject = { ...variant, ...given };
  const constant = merged['const'];
  const plain = Object.entries(merged).flatMap(([key, value]): [string, JsonValue][] => {
    if (!PLAIN.has(key)) return [];
    if (key === 'type') return [[key, oneType(value)]];
    if (key === 'properties') return [[key, mapValues(asObject(value), toPlain)]];
    return [[key, key === 'items' ? toPlain(value) : value]];
  });
  return Object.fromEntries([...plain, ...(constant === undefined ? [] : [['enum', [constant]] as const])]);
};

/**
 * Returns the schema of a tool's input as vendors accept it: an object with properties.
 * Alternatives at the top become optional properties.
 */
export const inputSchemaOf = (
  { inputSchema }: ModelTool,
  { toolSchemas }: Pick<ModelParameters, 'toolSchemas'>,
): JsonObject => {
  const variants = variantsOf(inputSchema);
  const own = Object.fromEntries(Object.entries(inputSchema).filter(([key]) => !NOT_AT_TOP.has(key)));
  const properties = Object.assign(
    {},
    ...variants.map((variant) => asObject(variant['properties'])),
    asObject(own['properties']),
  ) as JsonObject;
  const schema = { ...own, type: 'object', properties };
  return toolSchemas === 'simple' ? toPlain(schema) : schema;
};
