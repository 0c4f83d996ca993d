import type { z } from 'zod';
import type { AntiphonConfig, EffectiveSetting, OwnedSetting, ResolvedFile } from './antiphon-config.js';
import { ConfigFile } from './config.schema.js';
import { shown } from './key-hints.js';
import { unwrap } from './problem-list.js';
import { ALL_WORKSPACES, isVisibleIn } from './workspace-config.js';

type Node = z.core.$ZodType;
interface Definition {
  readonly type: string;
  readonly shape?: Readonly<Record<string, Node>>;
  readonly element?: Node;
}

const definitionOf = (schema: Node): Definition => unwrap(schema)._zod.def as Definition;

/** Kinds of values that cannot hold a secret. A text is shown only if its schema is in `shown`. */
const HARMLESS: ReadonlySet<string> = new Set(['number', 'boolean', 'enum']);

const isShown = (schema: Node): boolean => {
  const { type, element } = definitionOf(schema);
  if (element !== undefined) return isShown(element);
  return HARMLESS.has(type) || shown.has(unwrap(schema) as z.ZodType);
};

const isMoney = (schema: Node): boolean => shown.get(unwrap(schema) as z.ZodType)?.unit === 'micro-usd';

const shapeOfEntries = (schema: Node): Definition['shape'] => {
  const { element } = definitionOf(schema);
  return element === undefined ? undefined : definitionOf(element).shape;
};

/** Key of the schema. The key of an entry of a list has `[]` after the name of the list. */
export interface SettingKey {
  readonly key: string;
  readonly isSecret: boolean;
}

const collectKeys = (schema: Node, path: string): readonly SettingKey[] => {
  const entries = shapeOfEntries(schema);
  const shape = definitionOf(schema).shape ?? entries;
  if (shape === undefined) return [{ key: path, isSecret: !isShown(schema) }];
  const below = entries === undefined ? path : `${path}[]`;
  return Object.entries(shape).flatMap(([key, child]) =>
    collectKeys(child, below === '' ? key : `${below}.${key}`),
  );
};

/** Returns every key of the schema that has a value. */
export const settingKeys = (): readonly SettingKey[] => collectKeys(ConfigFile, '');

type Value = EffectiveSetting['value'];
type Table = Readonly<Record<string, unknown>>;

interface Place {
  readonly path: string;
  /** Value at the same place of the file; undefined if the file has none. */
  readonly written: unknown;
  readonly workspace: string;
}

const tableFrom = (value: unknown): Table =>
  typeof value === 'object' && value !== null ? (value as Table) : {};
const listFrom = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const valueOf = (schema: Node, value: unknown): Value => {
  const isSet = value !== undefined && value !== null;
  if (!isShown(schema)) return isSet ? 'set' : 'not set';
  if (!isSet) return null;
  return isMoney(schema) ? (value as number) / 1e6 : (value as Value);
};

/** Keys that name an entry of a list, the first of which is used. A price has two of them. */
const NAMING = ['id', 'name', 'tool', 'agent'];

const labelOf = (shape: Readonly<Record<string, Node>>, entry: Table): string => {
  const naming = NAMING.find((key) => shape[key] !== undefined && isShown(shape[key]));
  const keys = naming === undefined ? ['workspace', 'provider', 'model'] : [naming];
  return keys.flatMap((key) => (typeof entry[key] === 'string' ? [entry[key]] : [])).join(' ');
};

const describeEntries = (schema: Node, value: unknown, place: Place): readonly OwnedSetting[] => {
  const { element = schema } = definitionOf(schema);
  const counts = new Map<string, number>();
  return listFrom(value).flatMap((entry, index) => {
    const table = tableFrom(entry);
    const workspace = typeof table['workspace'] === 'string' ? table['workspace'] : place.workspace;
    const label = labelOf(definitionOf(element).shape ?? {}, table);
    const count = (counts.get(`${workspace} ${label}`) ?? 0) + 1;
    counts.set(`${workspace} ${label}`, count);
    const path = `${place.path}[${count === 1 ? label : `${label} ${count}`}]`;
    return describe(element, entry, { path, workspace, written: listFrom(place.written)[index] });
  });
};

const describe = (schema: Node, value: unknown, place: Place): readonly OwnedSetting[] => {
  const { shape } = definitionOf(schema);
  const { path, written, workspace } = place;
  if (shape !== undefined)
    return Object.entries(shape).flatMap(([key, child]) =>
      describe(child, tableFrom(value)[key], {
        path: path === '' ? key : `${path}.${key}`,
        written: tableFrom(written)[key],
        workspace,
      }),
    );
  if (shapeOfEntries(schema) !== undefined) return describeEntries(schema, value, place);
  const origin = written === undefined ? 'default' : 'file';
  return [{ key: path, value: valueOf(schema, value), origin, isSecret: !isShown(schema), workspace }];
};

/** Returns the file with the general limits in each workspace's own ones, which inherit them. */
const withInherited = (written: Table): Table => {
  const { workspaces, ...general } = tableFrom(written['budgets']);
  const own = listFrom(workspaces).map((entry) => ({ ...general, ...tableFrom(entry) }));
  return { ...written, budgets: { ...general, workspaces: own } };
};

/** Keys of the default provider that the environment decides. */
const FROM_ENVIRONMENT = /^providers\[[^\]]*\]\.(?:name|kind|api_key_env)$/;

/**
 * Returns every setting with its origin. A secret is only `set` or `not set`. `written` is the
 * parsed file, without defaults.
 */
export const describeSettings = (file: ResolvedFile, written: Table): readonly OwnedSetting[] => {
  const place: Place = { path: '', written: withInherited(written), workspace: ALL_WORKSPACES };
  const settings = describe(ConfigFile, file, place);
  const isFromKeys = listFrom(written['providers']).length === 0 && file.providers[0]?.kind !== 'scripted';
  if (!isFromKeys) return settings;
  return settings.map((setting) =>
    FROM_ENVIRONMENT.test(setting.key) ? { ...setting, origin: 'environment' } : setting,
  );
};

const GENERAL_BUDGET = /^budgets\.[a-z_]+$/;

/**
 * Returns the settings of a workspace: the shared ones, and its own agents, bindings, plug-ins and
 * limits. Its own limits replace the general ones.
 */
export const effectiveSettings = (
  { settings, budgets }: Pick<AntiphonConfig, 'settings' | 'budgets'>,
  reader: string,
): EffectiveSetting[] => {
  const hasOwnBudgets = budgets.workspaces.some((own) => own.workspace === reader);
  return settings
    .filter((setting) => isVisibleIn(setting, reader))
    .filter(({ key }) => !(hasOwnBudgets && GENERAL_BUDGET.test(key)))
    .map(({ key, value, origin, isSecret }) => ({ key, value, origin, isSecret }));
};
