import { DEFAULT_TOOL_RETRY, ToolName, narrowRetry } from '@antiphon/contracts/sandbox';
import type { PluginView, ToolRetry } from '@antiphon/contracts/sandbox';
import type { Logger } from '@antiphon/observability';
import { validateModule } from '@antiphon/sandbox-domain';
import { explainUngrantable, grantedNames } from './capabilities.js';
import type { PluginDescription } from '@antiphon/sandbox-domain';
import type { CellListener } from '../cell/exchange.js';
import type { ModuleImage } from '../cell/run-in-cell.js';
import { createPluginLog } from './plugin-log.js';
import { readPluginFile } from './plugin-source.js';
import type { PluginSource } from './plugin-source.js';
import type { PluginProbe } from './plugin-probe.js';

/** Timeout and retries of a tool: those it declares, limited by the configuration. */
export interface ToolPolicy {
  /** Timeout of one attempt, ms. */
  readonly timeoutMs: number;
  /** Null when neither the tool nor the configuration sets anything. */
  readonly retry: ToolRetry | null;
}

/** A plug-in that can be called. */
export interface LoadedPlugin {
  readonly source: PluginSource;
  readonly image: ModuleImage;
  readonly description: PluginDescription;
  readonly policy: ToolPolicy;
  readonly listener: CellListener;
}

/** Returns a plug-in's capabilities, sorted: an approval of a call covers them. */
export const sortedGrants = ({ source }: LoadedPlugin): string[] => [...source.capabilities].sort();

export interface PluginEntry {
  readonly source: PluginSource;
  readonly view: PluginView;
  readonly plugin: LoadedPlugin | null;
}

type PolicyLimits = Pick<PluginSource, 'timeoutMs' | 'retry'>;

/** Limits a tool's retries. An idempotent tool without declared retries has the default ones. */
const limitRetry = (
  { idempotent, declares }: Pick<PluginDescription, 'idempotent' | 'declares'>,
  { retry: caps }: PolicyLimits,
): ToolRetry | null => {
  if (declares.retry) return narrowRetry(declares.retry, caps);
  if (!idempotent || (caps.maxAttempts === null && caps.maxBackoffMs === null)) return null;
  return narrowRetry(DEFAULT_TOOL_RETRY, caps);
};

const limitPolicy = (
  description: Pick<PluginDescription, 'idempotent' | 'declares'>,
  allowed: PolicyLimits,
): ToolPolicy => ({
  timeoutMs: Math.min(description.declares.timeoutMs ?? allowed.timeoutMs, allowed.timeoutMs),
  retry: limitRetry(description, allowed),
});

/** Returns the configuration keys that limit a tool, with the values that it declares. */
const findLimitingKeys = (
  { declares }: Pick<PluginDescription, 'declares'>,
  { timeoutMs, retry }: ToolPolicy,
): string[] => {
  const { timeoutMs: wanted = 0, retry: declared } = declares;
  const keys = wanted > timeoutMs ? [`timeout_ms = ${wanted}`] : [];
  if (!declared || !retry) return keys;
  if (declared.maxAttempts > retry.maxAttempts) keys.push(`retry.max_attempts = ${declared.maxAttempts}`);
  if (declared.maxBackoffMs > retry.maxBackoffMs)
    keys.push(`retry.max_backoff_ms = ${declared.maxBackoffMs}`);
  return keys;
};

export interface Refusal {
  readonly status: 'missing' | 'rejected';
  readonly reason: string;
  readonly digest?: string;
}

const reject = (reason: string, digest?: string): Refusal => ({
  status: 'rejected',
  reason,
  digest,
});

const tryLoad = async (
  source: PluginSource,
  probe: PluginProbe,
  logger: Logger,
): Promise<LoadedPlugin | Refusal> => {
  const file = await readPluginFile(source.path);
  return file.status === 'read' ? loadModule(source, file, probe, logger) : file;
};

/** Validates a module and asks it for its description, in a cell. */
export const loadModule = async (
  source: PluginSource,
  { bytes, digest }: { readonly bytes: Uint8Array; readonly digest: string },
  probe: PluginProbe,
  logger: Logger,
): Promise<LoadedPlugin | Refusal> => {
  if (!ToolName.safeParse(source.name).success) return reject('its name is not one that a tool may have');
  const ungrantable = explainUngrantable(source.capabilities);
  if (ungrantable !== null) return reject(ungrantable, digest);
  if (source.kind === 'channel' && grantedNames(source.capabilities, 'secret').size > 0)
    return reject('a channel has a token, and no capability secret:NAME', digest);
  const verdict = validateModule(bytes, source);
  if (!verdict.accepted) return reject(verdict.reason, digest);
  const image = { digest, bytes: verdict.bytes };
  const listener = createPluginLog(source.name, logger);
  const { describes } = verdict;
  const result = await probe.probe({ name: source.name, image, describes, listener });
  if (!result.ok) return reject(result.reason, digest);
  const { description } = result;
  return { source, image, description, policy: limitPolicy(description, source), listener };
};

const logLimitedPolicy = ({ source, description, policy }: LoadedPlugin, logger: Logger): void => {
  const allowWith = findLimitingKeys(description, policy);
  if (allowWith.length === 0) return;
  logger.warn({ plugin: source.name, ...policy, allowWith }, 'plugin declares more than allowed');
};

const createLoadedEntry = (plugin: LoadedPlugin, logger: Logger): PluginEntry => {
  const { source, image } = plugin;
  const { name, kind, capabilities } = source;
  const fields = { plugin: name, kind, digest: image.digest };
  if (kind === 'tool') logger.info({ ...fields, ...plugin.policy }, 'plugin loaded');
  else logger.info(fields, 'channel plugin loaded');
  logLimitedPolicy(plugin, logger);
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
  return { source, view, plugin };
};

const createRefusedEntry = (source: PluginSource, refusal: Refusal, logger: Logger): PluginEntry => {
  const { name, kind, path, capabilities } = source;
  const { status, reason, digest = null } = refusal;
  // Only the operator's log contains the path; clients see the view.
  logger.warn({ plugin: name, path, reason }, status === 'missing' ? 'plugin missing' : 'plugin rejected');
  const view: PluginView = {
    name,
    kind,
    status,
    reason,
    moduleDigest: digest,
    capabilities: [...capabilities],
    tools: [],
  };
  return { source, view, plugin: null };
};

/**
 * Loads plug-ins one after another. Lists a missing or refused one and continues with the others.
 */
export const loadPlugins = async (
  sources: readonly PluginSource[],
  probe: PluginProbe,
  logger: Logger,
): Promise<PluginEntry[]> => {
  const entries: PluginEntry[] = [];
  const names = new Set<string>();
  for (const source of sources) {
    const result = names.has(source.name)
      ? reject(`the name ${source.name} is taken by another plug-in`)
      : await tryLoad(source, probe, logger);
    names.add(source.name);
    entries.push(
      'image' in result ? createLoadedEntry(result, logger) : createRefusedEntry(source, result, logger),
    );
  }
  return entries;
};
