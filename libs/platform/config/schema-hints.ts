import type { z } from 'zod';
import type { KeyPath } from './config-problem.js';
import { ConfigFile } from './config.schema.js';
import { hints } from './key-hints.js';
import type { Hint } from './key-hints.js';

type Node = z.core.$ZodType;

/** Without what says that a key may be absent. */
const unwrap = (schema: Node): Node => {
  let at = schema as { _zod: { def: { type: string; innerType?: Node } } };
  while (at._zod.def.innerType !== undefined) at = at._zod.def.innerType as typeof at;
  return at as Node;
};

const step = (schema: Node, part: string | number): Node | null => {
  const { def } = unwrap(schema)._zod as { def: { shape?: Record<string, Node>; element?: Node } };
  const shape = def.shape ?? {};
  // `__proto__` and its like are keys of a hostile file, not of the grammar.
  const next = typeof part === 'number' ? def.element : Object.hasOwn(shape, part) ? shape[part] : undefined;
  return next === undefined ? null : unwrap(next);
};

const schemaAt = (path: KeyPath): Node | null =>
  path.reduce<Node | null>((schema, part) => (schema === null ? null : step(schema, part)), ConfigFile);

/** What belongs at a path, or null for a path that the grammar does not know. */
export const hintAt = (path: KeyPath): Hint | null => {
  const schema = schemaAt(path);
  return schema === null ? null : (hints.get(schema as z.ZodType) ?? null);
};

/** The keys that the table at a path may have. */
export const knownKeys = (path: KeyPath): readonly string[] => {
  const schema = schemaAt(path);
  if (schema === null) return [];
  const { def } = unwrap(schema)._zod as { def: { shape?: Record<string, Node> } };
  return Object.keys(def.shape ?? {});
};

const collectKeys = (path: KeyPath): readonly string[] =>
  knownKeys(path).flatMap((key) => {
    const below = [...path, key];
    const deeper = [...collectKeys(below), ...collectKeys([...below, 0])];
    return [below.filter((part) => typeof part === 'string').join('.'), ...deeper];
  });

/** Every key that the grammar knows, without list positions: `agents.fallback.model`. */
export const configKeys = (): readonly string[] => collectKeys([]);
