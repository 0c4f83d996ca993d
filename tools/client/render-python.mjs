const HEADER = `"""Frames of the socket on which programs serve tools.

Written by \`npm run generate:client\` from libs/contracts/gateway/tool-socket.ts. Do not edit.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict
`;

const NAMES = { string: 'str', integer: 'int', number: 'float', boolean: 'bool', null: 'None' };

/** Returns the text of a schema without its descriptions and defaults, by which it is found. */
const keyOf = ({ description: _d, default: _v, ...schema }) => JSON.stringify(schema);

/** Returns the Python type of a JSON Schema. A nested object is a dict, unless it has a name. */
const typeOf = (schema, named) => {
  const name = named.get(keyOf(schema));
  if (name) return name;
  const { type, anyOf, enum: values, const: value, items } = schema;
  if (value !== undefined) return `Literal[${JSON.stringify(value)}]`;
  if (values) return `Literal[${values.map((one) => JSON.stringify(one)).join(', ')}]`;
  if (anyOf) return anyOf.map((one) => typeOf(one, named)).join(' | ');
  if (Array.isArray(type)) return type.map((one) => NAMES[one] ?? 'Any').join(' | ');
  if (type === 'array') return `list[${typeOf(items ?? {}, named)}]`;
  if (type === 'object') return 'dict[str, Any]';
  return NAMES[type] ?? 'Any';
};

const renderClass = (name, { properties, required = [] }, named) =>
  [
    `class ${name}(TypedDict):`,
    ...Object.entries(properties).map(([field, schema]) => {
      const type = typeOf(schema, named);
      return `    ${field}: ${required.includes(field) ? type : `NotRequired[${type}]`}`;
    }),
  ].join('\n');

/**
 * Renders JSON Schemas of objects as typed dicts, in their order. A schema that equals an earlier
 * one is named by it.
 */
export const renderPython = (schemas, aliases) => {
  const named = new Map();
  const parts = Object.entries(schemas).map(([name, { $schema: _, ...schema }]) => {
    const text = renderClass(name, schema, named);
    named.set(keyOf(schema), name);
    return text;
  });
  const rest = Object.entries(aliases).map(
    ([name, { $schema: _, ...schema }]) => `${name} = ${typeOf(schema, named)}`,
  );
  return `${[HEADER.trimEnd(), ...parts, rest.join('\n')].join('\n\n\n')}\n`;
};
