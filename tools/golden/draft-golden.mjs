import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { EVENT_CONTRACTS } from '../../libs/contracts/dist/events/index.js';

/*
 * Drafts a golden payload from the contract of each event type and form that has none. Run it by
 * `npm run golden:events` after a build, then replace the values by realistic ones. It replaces no
 * existing payload.
 */
const FOLDER = join(import.meta.dirname, '../../libs/contracts/events/golden');
const UUID = '0192f0c1-7a2b-7c3d-8e4f-000000000001';
const TEXTS = {
  sessionKey: 'main:telegram:acme%3Abot:42',
  content: 'Grüße, 世界 🌍',
  nodeId: 'review',
  id: 'review',
};

const draftText = (definition, name) => {
  const formats = [definition.format, ...(definition.checks ?? []).map((check) => check._zod.def.format)];
  if (formats.includes('uuid')) return UUID;
  if (formats.includes('datetime')) return '2026-11-21T09:30:00.125Z';
  return TEXTS[name] ?? `a ${name}`;
};

const draft = (schema, name) => {
  const definition = schema._zod.def;
  switch (definition.type) {
    case 'object':
      return Object.fromEntries(Object.entries(schema.shape).map(([key, value]) => [key, draft(value, key)]));
    case 'optional':
    case 'nullable':
    case 'default':
    case 'readonly':
      return draft(definition.innerType, name);
    case 'literal':
      return definition.values[0];
    case 'enum':
      return Object.values(definition.entries)[0];
    case 'union':
      return draft(definition.options[0], name);
    case 'array':
      return [draft(definition.element, name)];
    case 'record':
      return { topic: draft(definition.valueType, 'topic') };
    case 'boolean':
      return true;
    case 'number':
      return 3;
    case 'string':
      return draftText(definition, name);
    default:
      return { any: { list: [1, null, true, 'x'] } }; // z.json()
  }
};

for (const { category, type, schemaVersion, schema } of EVENT_CONTRACTS) {
  const file = join(FOLDER, category, `${type}.v${schemaVersion}.json`);
  if (existsSync(file)) continue;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(draft(schema, ''), null, 2)}\n`);
  process.stdout.write(`drafted ${file}; look at it\n`);
}
