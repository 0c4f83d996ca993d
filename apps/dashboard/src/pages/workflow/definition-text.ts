import { parse, stringify } from 'yaml';
import { DEFAULT_ATTEMPTS, type Definition, type WorkflowNode } from './definition.js';

export type TextFormat = 'yaml' | 'json';

/** Leaves out what has its default, in the order that people write. */
const plainNode = ({ id, agent, needs, attempts, prompt }: WorkflowNode): object => ({
  id,
  agent,
  ...(needs.length > 0 ? { needs } : {}),
  ...(attempts === DEFAULT_ATTEMPTS ? {} : { attempts }),
  prompt,
});

const plainOf = ({ name, description, inputs, nodes }: Definition): object => ({
  name,
  ...(description === undefined ? {} : { description }),
  ...(Object.keys(inputs).length > 0 ? { inputs } : {}),
  nodes: nodes.map(plainNode),
});

/** Prints a definition. Reading the text returns the same definition. */
export const printDefinition = (definition: Definition, format: TextFormat): string =>
  format === 'json'
    ? `${JSON.stringify(plainOf(definition), null, 2)}\n`
    : stringify(plainOf(definition), { lineWidth: 100, aliasDuplicateObjects: false });

class BadDefinition extends Error {}
const refuse = (path: string, problem: string): never => {
  throw new BadDefinition(`${path === '' ? 'The definition' : path} ${problem}`);
};

const readObject = (value: unknown, path: string, allowed: readonly string[]): Record<string, unknown> => {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return refuse(path, 'must be an object');
  for (const key of Object.keys(value)) {
    if (!allowed.includes(key)) refuse(path, `has “${key}”; it may have ${allowed.join(', ')}`);
  }
  return value as Record<string, unknown>;
};
const readText = (value: unknown, path: string): string =>
  typeof value === 'string' ? value : refuse(path, 'must be a text');
const readList = (value: unknown, path: string): readonly unknown[] =>
  value === undefined ? [] : Array.isArray(value) ? value : refuse(path, 'must be a list');

const readNode = (value: unknown, index: number): WorkflowNode => {
  const path = `nodes[${index}]`;
  const given = readObject(value, path, ['id', 'agent', 'prompt', 'needs', 'attempts']);
  const attempts = given['attempts'] ?? DEFAULT_ATTEMPTS;
  if (typeof attempts !== 'number' || !Number.isInteger(attempts) || attempts < 1 || attempts > 10)
    return refuse(`${path}.attempts`, 'must be a whole number from 1 to 10');
  return {
    id: readText(given['id'], `${path}.id`),
    agent: readText(given['agent'], `${path}.agent`),
    prompt: readText(given['prompt'], `${path}.prompt`),
    needs: readList(given['needs'], `${path}.needs`).map((need, at) =>
      readText(need, `${path}.needs[${at}]`),
    ),
    attempts,
  };
};

const readInputs = (value: unknown): Definition['inputs'] => {
  if (value === undefined) return {};
  const entries = Object.entries((value ?? refuse('inputs', 'must be an object')) as object);
  return Object.fromEntries(
    entries.map(([name, input]) => {
      const given = readObject(input ?? {}, `inputs.${name}`, ['description', 'default']);
      const texts = Object.entries(given).map(([key, text]) => [
        key,
        readText(text, `inputs.${name}.${key}`),
      ]);
      return [name, Object.fromEntries(texts) as Definition['inputs'][string]];
    }),
  );
};

/** Reads YAML or JSON. Throws with the path of a field that has no meaning: nothing is dropped. */
export const readDefinition = (text: string): Definition => {
  const given = readObject(parse(text, { maxAliasCount: 0 }), '', ['name', 'description', 'inputs', 'nodes']);
  return {
    name: readText(given['name'], 'name'),
    ...(given['description'] === undefined
      ? {}
      : { description: readText(given['description'], 'description') }),
    inputs: readInputs(given['inputs']),
    nodes: readList(given['nodes'], 'nodes').map(readNode),
  };
};
