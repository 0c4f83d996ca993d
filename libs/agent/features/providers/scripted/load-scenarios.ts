import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { invalid } from '@antiphon/kernel';
import { parseScenario, type Scenario } from './scenario.js';

/** The scenario that a model's name plays; undefined for the built-in replies. */
export type ScenarioLookup = (model: string) => Scenario | undefined;

const toPath = (baseUrl: string, folder: string): string =>
  baseUrl.startsWith('file://') ? fileURLToPath(baseUrl) : resolve(folder, baseUrl.slice('file:'.length));

const load = (path: string): Scenario => {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    throw invalid('PROVIDER.SCENARIO_UNREADABLE', `the scenario ${path} cannot be read`, { cause });
  }
  const result = parseScenario(text);
  if (!result.ok)
    throw invalid('PROVIDER.SCENARIO_INVALID', `the scenario ${path} is wrong: ${result.problem}`);
  return result.scenario;
};

const loadFolder = (path: string): ScenarioLookup => {
  let files: string[];
  try {
    files = readdirSync(path).filter((file) => file.endsWith('.json'));
  } catch (cause) {
    throw invalid('PROVIDER.SCENARIO_UNREADABLE', `the folder of scenarios ${path} cannot be read`, {
      cause,
    });
  }
  const scenarios = new Map(files.map((file) => [basename(file, '.json'), load(join(path, file))]));
  return (model) => scenarios.get(model);
};

/**
 * Reads scenario files once, at the start. `base_url = "file:demo.json"` plays that file whatever the model;
 * `file:demos/`, with a slash at its end, plays `demos/<model>.json`. Relative paths begin at the configuration's folder.
 *
 * @param source absolute path of the configuration file, null for none
 */
export const loadScenarios = (baseUrl: string | null, source: string | null): ScenarioLookup => {
  if (baseUrl === null) return () => undefined;
  if (!baseUrl.startsWith('file:'))
    throw invalid(
      'PROVIDER.BASE_URL_INVALID',
      `a scripted provider's base_url is a file: URL, not ${baseUrl}`,
    );
  const path = toPath(baseUrl, source === null ? process.cwd() : dirname(source));
  if (baseUrl.endsWith('/')) return loadFolder(path);
  const scenario = load(path);
  return () => scenario;
};
