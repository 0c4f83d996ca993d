import { readFileSync, statSync } from 'node:fs';
import { extname, resolve } from 'node:path';
import { invalid } from '@antiphon/kernel';

/** Maximum size of a definition: four identity texts and the rest, bytes. */
const MAX_BYTES = 2 * 1024 * 1024;

const parseYaml = async (text: string): Promise<unknown> => (await import('yaml')).parse(text) as unknown;

const PARSERS: Readonly<Record<string, (text: string) => Promise<unknown>>> = {
  '.json': async (text) => Promise.resolve(JSON.parse(text) as unknown),
  '.toml': async (text) => {
    const { getStaticTOMLValue, parseTOML } = await import('toml-eslint-parser');
    return getStaticTOMLValue(parseTOML(text, { tomlVersion: '1.0.0' }));
  },
  '.yaml': parseYaml,
  '.yml': parseYaml,
};

const toCamelCase = (key: string): string =>
  key.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** Accepts the snake case of `antiphon.toml` for the keys of a definition and of its tables. */
const renameKeys = (value: unknown): unknown => {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [toCamelCase(key), renameKeys(item)]));
};

const readText = (path: string, file: string): string => {
  try {
    if (statSync(path).size > MAX_BYTES) throw new Error('it is too large to be the definition of an agent');
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw invalid(
      'CLI.USAGE',
      `${file} cannot be read: ${code === 'ENOENT' ? 'there is no such file' : message}`,
    );
  }
};

/** Parses the definition of an agent by the ending of its file. Throws `CLI.USAGE`. */
export const parseAgentText = async (file: string, text: string): Promise<Record<string, unknown>> => {
  const parse = PARSERS[extname(file).toLowerCase()];
  if (!parse) throw invalid('CLI.USAGE', `${file}: expected a file that ends in .toml, .json, .yaml or .yml`);
  const value = await parse(text).catch((error: unknown) => {
    throw invalid('CLI.USAGE', `${file} is not valid: ${error instanceof Error ? error.message : 'unknown'}`);
  });
  const renamed = renameKeys(value);
  if (renamed === null || typeof renamed !== 'object' || Array.isArray(renamed))
    throw invalid('CLI.USAGE', `${file}: expected the fields of an agent, such as a name`);
  return renamed as Record<string, unknown>;
};

/** Reads the definition of an agent from a TOML, JSON or YAML file. Throws `CLI.USAGE`. */
export const readAgentFile = (cwd: string, file: string): Promise<Record<string, unknown>> =>
  parseAgentText(file, readText(resolve(cwd, file), file));
