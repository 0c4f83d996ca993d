import { z } from 'zod';
import { code, escapeCell, renderTable, withPart } from './markdown.mjs';

const MAX_VALUES = 8;

const toSchema = (schema) => z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });

/** Returns the schemas of the forms of a value. */
const formsOf = ({ anyOf, oneOf, allOf, ...schema }) =>
  (anyOf ?? oneOf ?? allOf ?? [schema]).flatMap((form) =>
    form === schema ? [schema] : 'anyOf' in form || 'oneOf' in form ? formsOf(form) : [form],
  );

/** Returns a field with its values, if they are few. */
const fieldOf = ([name, { enum: values = [], const: value }]) => {
  if (value !== undefined) return `${name}(${value})`;
  return values.length > 0 && values.length <= MAX_VALUES ? `${name}(${values.join(', ')})` : name;
};

const fieldsOf = ({ properties = {}, required = [] }) => {
  const fields = Object.entries(properties);
  const needed = fields.filter(([name]) => required.includes(name)).map(fieldOf);
  const others = fields.filter(([name]) => !required.includes(name)).map(fieldOf);
  return [
    ...(needed.length > 0 ? [code(needed.join(' '))] : []),
    ...(others.length > 0 ? [`optional ${code(others.join(' '))}`] : []),
  ].join(', ');
};

/** Returns the fields of each form of a value. */
const describe = (schema) =>
  [...new Set(formsOf(toSchema(schema)).map(fieldsOf).filter(Boolean))].join(', or ');

const resultOf = (answer) => {
  if (typeof answer === 'string') return answer === 'stream' ? 'stream' : 'events';
  const { const: value, properties } = toSchema(answer);
  if (value !== undefined) return code(JSON.stringify(value));
  return code(Object.keys(properties ?? {}).join(' '));
};

const rightOf = ({ access, isForOperators, feature }) =>
  [
    access === 'open' ? 'none' : access === 'authenticated' ? 'any credential' : code(access),
    ...(isForOperators ? ['in `default`'] : []),
    ...(feature ? [code(feature)] : []),
  ].join(', ');

const methodRow = ({ name, summary, params, answer, ...rule }) => [
  code(name),
  escapeCell(summary),
  escapeCell(describe(params)),
  escapeCell(resultOf(answer)),
  rightOf(rule),
];

const inputOf = ({ query, body, upload, idempotent }) =>
  [
    ...(query ? [describe(query)] : []),
    ...(body ? [`body ${describe(body) || 'of any fields'}`] : []),
    ...(upload ? ['or bytes'] : []),
    ...(idempotent ? ['`Idempotency-Key`'] : []),
  ].join('; ');

const routeRow = ({ method, path, summary, ...route }) => [
  code(`${method.toUpperCase()} ${path}`),
  escapeCell(summary),
  escapeCell(inputOf(route)),
  rightOf(route),
];

/** Returns the text of docs/contract.md with the tables of methods and routes. */
export const withReference = (contract, { methods, routes }) => {
  const methodTable = renderTable(
    ['method', 'does', 'params', 'result', 'right, feature'],
    methods.map(methodRow),
  );
  const routeTable = renderTable(['route', 'does', 'query and body', 'right, feature'], routes.map(routeRow));
  return withPart(withPart(contract, 'methods', methodTable), 'routes', routeTable);
};
