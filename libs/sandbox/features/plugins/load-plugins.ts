import { ToolName } from '@antiphon/contracts/sandbox';
import type { PluginView } from '@antiphon/contracts/sandbox';
import type { Logger } from '@antiphon/observability';
import { judgeModule, ungrantable } from '@antiphon/sandbox-domain';
import type { PluginDescription } from '@antiphon/sandbox-domain';
import type { CellListener } from '../cell/exchange.js';
import type { ModuleImage } from '../cell/run-in-cell.js';
import { createPluginLog } from './plugin-log.js';
import { readPluginFile } from './plugin-source.js';
import type { PluginSource } from './plugin-source.js';
import { cappedKeys, policyWithin } from './tool-policy.js';
import type { ToolPolicy } from './tool-policy.js';
import type { TrialBench } from './trial-bench.js';

/** A plug-in that may be called. */
export interface LoadedPlugin {
  readonly source: PluginSource;
  readonly image: ModuleImage;
  readonly description: PluginDescription;
  readonly policy: ToolPolicy;
  readonly listener: CellListener;
}

/** What a module may do, sorted: part of what somebody agrees to who approves a call. */
export const grantsOf = ({ source }: LoadedPlugin): string[] => [...source.capabilities].sort();

export interface PluginEntry {
  readonly view: PluginView;
  readonly plugin: LoadedPlugin | null;
}

interface Refusal {
  readonly status: 'missing' | 'rejected';
  readonly reason: string;
  readonly digest?: string;
}

const reject = (reason: string, digest?: string): Refusal => ({
  status: 'rejected',
  reason,
  ...(digest === undefined ? {} : { digest }),
});

const tryLoad = async (
  source: PluginSource,
  bench: TrialBench,
  logger: Logger,
): Promise<LoadedPlugin | Refusal> => {
  if (!ToolName.safeParse(source.name).success) return reject('its name is not one that a tool may have');
  const file = await readPluginFile(source.path);
  if (file.status !== 'read') return file;
  const { bytes, digest } = file;
  const denied = ungrantable(source.capabilities);
  if (denied !== null) return reject(denied, digest);
  const verdict = judgeModule(bytes, source);
  if (!verdict.accepted) return reject(verdict.reason, digest);
  const image = { digest, bytes: verdict.bytes };
  const listener = createPluginLog(source.name, logger);
  const { describes } = verdict;
  const trial = await bench.attempt({ name: source.name, image, describes, listener });
  if (!trial.ok) return reject(trial.reason, digest);
  const { description } = trial;
  return { source, image, description, policy: policyWithin(description, source), listener };
};

/** The operator's word goes before the tool's, and is not kept silently. */
const sayCapped = ({ source, description, policy }: LoadedPlugin, logger: Logger): void => {
  const keys = cappedKeys(description, policy);
  if (keys.length === 0) return;
  const text = `a plug-in declares more than its configuration allows, and is held to that; allow it with ${keys.join(', ')}`;
  logger.warn({ plugin: source.name, ...policy }, text);
};

const loadedEntry = (plugin: LoadedPlugin, logger: Logger): PluginEntry => {
  const { source, image } = plugin;
  const { name, kind, capabilities } = source;
  const fields = { plugin: name, kind, digest: image.digest };
  if (kind === 'tool') logger.info({ ...fields, ...plugin.policy }, 'a plug-in is loaded');
  else logger.warn(fields, 'a channel plug-in is loaded, but no endpoint calls it yet');
  sayCapped(plugin, logger);
  const tools = kind === 'tool' ? [name] : [];
  const view: PluginView = {
    name,
    kind,
    status: 'loaded',
    reason: null,
    moduleDigest: image.digest,
    capabilities: [...capabilities],
    tools,
  };
  return { view, plugin };
};

const refusedEntry = (source: PluginSource, refusal: Refusal, logger: Logger): PluginEntry => {
  const { name, kind, path, capabilities } = source;
  const { status, reason, digest = null } = refusal;
  // The path is the operator's to see, in the log; the view goes to clients.
  logger.warn({ plugin: name, path, reason }, `a plug-in is ${status}`);
  const view: PluginView = {
    name,
    kind,
    status,
    reason,
    moduleDigest: digest,
    capabilities: [...capabilities],
    tools: [],
  };
  return { view, plugin: null };
};

/** Loads each plug-in in turn; one that is missing or refused is listed so, and the others go on. */
export const loadPlugins = async (
  sources: readonly PluginSource[],
  bench: TrialBench,
  logger: Logger,
): Promise<PluginEntry[]> => {
  const entries: PluginEntry[] = [];
  const names = new Set<string>();
  for (const source of sources) {
    const result = names.has(source.name)
      ? reject(`the name ${source.name} is taken by another plug-in`)
      : await tryLoad(source, bench, logger);
    names.add(source.name);
    entries.push('image' in result ? loadedEntry(result, logger) : refusedEntry(source, result, logger));
  }
  return entries;
};
