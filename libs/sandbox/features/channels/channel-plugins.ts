import { ChannelDescription } from '@antiphon/contracts/sandbox';
import type { ChannelPluginView } from '@antiphon/contracts/sandbox';
import { findJsonExcess, transient } from '@antiphon/kernel';
import type { LoadedPlugin, PluginEntry } from '../plugins/load-plugins.js';
import { bindToCallerContext } from '../plugins/plugin-log.js';
import type { CellPool, PoolEnd } from '../pool/cell-pool.js';

/** Maximum size of what a plug-in returns, bytes. */
const MAX_OUTPUT_BYTES = 1024 * 1024;
const MAX_REASON = 200;

/** End of one run of a plug-in for a channel. */
export type ChannelRun =
  | { readonly outcome: 'completed'; readonly output: string }
  | { readonly outcome: 'failed'; readonly code: string; readonly message: string };

export interface ChannelPluginsDeps {
  readonly entries: readonly PluginEntry[];
  readonly pool: Pick<CellPool, 'run'>;
}

type Described =
  { readonly ok: true; readonly view: ChannelPluginView } | { readonly ok: false; readonly reason: string };

const failed = (code: string, message: string): ChannelRun => ({
  ...{ outcome: 'failed', code, message: message.slice(0, MAX_REASON) },
});

const CODES = {
  trapped: 'TOOL.TRAP',
  memory: 'TOOL.MEMORY',
  output: 'TOOL.OUTPUT',
  denied: 'TOOL.DENIED',
  timeout: 'TOOL.TIMEOUT',
  cancelled: 'TOOL.CANCELLED',
  died: 'TOOL.TRAP',
} as const;

const toRun = (end: PoolEnd): ChannelRun => {
  if (end.end === 'stopped') throw transient('SANDBOX.LOST', 'the sandbox stopped during the call');
  if (end.end === 'unavailable') throw transient('SANDBOX.BUSY', end.message);
  if (end.end !== 'returned') return failed(CODES[end.end], 'message' in end ? end.message : end.end);
  if (end.error !== null || end.status !== 0)
    return failed('CHANNEL.PLUGIN_ERROR', end.error ?? `status ${end.status}`);
  if (end.output.length > MAX_OUTPUT_BYTES)
    return failed('TOOL.OUTPUT', `it returned ${end.output.length} bytes, at most ${MAX_OUTPUT_BYTES}`);
  return { outcome: 'completed', output: new TextDecoder().decode(end.output) };
};

const parseDescription = (text: string): ChannelDescription | string => {
  const excess = findJsonExcess(text);
  if (excess !== null) return `describe() returned JSON that ${excess}`;
  try {
    const parsed = ChannelDescription.safeParse(JSON.parse(text));
    if (parsed.success) return parsed.data;
    const [issue] = parsed.error.issues;
    return `describe(): ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`;
  } catch {
    return 'describe() did not return JSON';
  }
};

/** Plug-ins of the kind channel. Each run has a fresh instance, and no request of its own. */
export class ChannelPlugins {
  private readonly described = new Map<string, Promise<Described>>();

  constructor(private readonly deps: ChannelPluginsDeps) {}

  /** Returns a loaded plug-in; null for none with this name. */
  find(name: string): LoadedPlugin | null {
    const entry = this.deps.entries.find(({ view }) => view.kind === 'channel' && view.name === name);
    return entry?.plugin ?? null;
  }

  /** Returns what a plug-in declares, or why it cannot be used. */
  async describe(name: string): Promise<Described> {
    const plugin = this.find(name);
    if (plugin === null) {
      const entry = this.deps.entries.find(({ view }) => view.name === name);
      const reason = entry?.view.reason ?? (entry ? 'it is not of the kind channel' : 'it is not configured');
      return { ok: false, reason };
    }
    const { digest } = plugin.image;
    const known = this.described.get(digest) ?? this.read(plugin);
    this.described.set(digest, known);
    known.catch(() => this.described.delete(digest));
    return known;
  }

  /** Runs an export on bytes. Throws a transient error if no cell is free. */
  async run(
    { source, image, listener }: LoadedPlugin,
    entry: 'parse_incoming' | 'format_outgoing' | 'describe',
    input: Uint8Array,
    settings: Readonly<Record<string, string>>,
  ): Promise<ChannelRun> {
    const end = await this.deps.pool.run({
      ...{ plugin: source.name, image, entry, input, settings, timeoutMs: source.timeoutMs },
      listener: bindToCallerContext(listener),
    });
    return toRun(end);
  }

  private async read(plugin: LoadedPlugin): Promise<Described> {
    const run = await this.run(plugin, 'describe', new Uint8Array(0), {});
    if (run.outcome === 'failed') return { ok: false, reason: `describe() failed: ${run.message}` };
    const description = parseDescription(run.output);
    if (typeof description === 'string') return { ok: false, reason: description.slice(0, MAX_REASON) };
    return { ok: true, view: { name: plugin.source.name, moduleDigest: plugin.image.digest, description } };
  }
}
