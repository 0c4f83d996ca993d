import { randomUUID } from 'node:crypto';
import { Controller, Inject } from '@nestjs/common';
import { NATIVE_TOOLS, isVisibleIn } from '@antiphon/config';
import type { AntiphonConfig } from '@antiphon/config';
import {
  addPlugin,
  callPlugin,
  listPlugins,
  listPluginVersions,
  permitPlugin,
  removePlugin,
} from '@antiphon/contracts/sandbox';
import type { KnownPlugin, PluginView, PluginVersion } from '@antiphon/contracts/sandbox';
import { conflict } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { CONFIG, LOGGER } from '@antiphon/service-host';
import { currentVersion, pluginMissing } from '@antiphon/sandbox-domain';
import type { WorkspacePlugins } from '@antiphon/sandbox-domain';
import type { z } from 'zod';
import { SANDBOX } from './sandbox.js';
import type { Sandbox } from './sandbox.js';
import { findHostedTool } from './tool-source.js';
import { digestOfModule } from '../plugins/added-plugins.js';
import { PluginRegistry } from '../plugins/plugin-registry.js';

type Request<T extends { readonly request: z.ZodType }> = z.output<T['request']>;
const NATIVE: ReadonlySet<string> = new Set(NATIVE_TOOLS);

const configuredView = (view: PluginView, { denied }: WorkspacePlugins): KnownPlugin => ({
  ...view,
  ...{ origin: 'configuration', allowed: !denied.has(view.name) },
  ...{ version: null, addedBy: null, addedAt: null },
});

/** Handles `cmd.sandbox.plugin.*`: the plug-ins that workspaces add, remove, allow and deny. */
@Controller()
export class ChangePlugins {
  constructor(
    @Inject(SANDBOX) private readonly sandbox: Sandbox,
    @Inject(CONFIG) private readonly config: AntiphonConfig,
    @Inject(PluginRegistry) private readonly registry: PluginRegistry,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  @HandleRequest(listPlugins)
  async list({ workspace }: Request<typeof listPlugins>): Promise<{ plugins: KnownPlugin[] }> {
    const { state, loaded } = await this.readAdded(workspace);
    const refusals = new Map(loaded.flatMap((one) => ('image' in one ? [] : [[one.digest, one] as const])));
    const added = [...state.added.keys()].flatMap((name) => this.viewOf(state, name, refusals) ?? []);
    return { plugins: [...this.configured(workspace).map((view) => configuredView(view, state)), ...added] };
  }

  @HandleRequest(addPlugin)
  async add({ workspace, name, module, caller, ...limits }: Request<typeof addPlugin>): Promise<KnownPlugin> {
    this.requireUnconfigured(workspace, name);
    const before = currentVersion((await this.registry.read(workspace)).added.get(name));
    if (!before) await this.requireFree(workspace, name);
    const bytes = Buffer.from(module, 'base64');
    await this.sandbox.added?.check(workspace, name, bytes, limits);
    const digest = digestOfModule(bytes);
    const command = { type: 'Add', name, digest, bytes: bytes.length, ...limits, actor: caller } as const;
    const { state, isChanged } = await this.registry.commit(workspace, command, { digest, bytes });
    const version = currentVersion(state.added.get(name))?.version;
    if (isChanged) this.logger.info({ workspace, plugin: name, version, digest, caller }, 'plugin added');
    return this.viewOf(state, name) ?? pluginMissing(name);
  }

  @HandleRequest(listPluginVersions)
  async versions({ workspace, name }: Request<typeof listPluginVersions>): Promise<{
    versions: PluginVersion[];
  }> {
    const plugin = (await this.registry.read(workspace)).added.get(name) ?? pluginMissing(name);
    return {
      versions: plugin.versions.map(({ digest, capabilities, actor, at, ...rest }) => ({
        ...{ version: rest.version, bytes: rest.bytes, timeoutMs: rest.timeoutMs, memoryMb: rest.memoryMb },
        ...{ moduleDigest: digest, capabilities: [...capabilities], addedBy: actor, addedAt: at },
      })),
    };
  }

  @HandleRequest(removePlugin)
  async remove({ workspace, name, caller }: Request<typeof removePlugin>): Promise<{ removed: boolean }> {
    this.requireUnconfigured(workspace, name);
    const { isChanged } = await this.registry.commit(workspace, { type: 'Remove', name, actor: caller });
    if (isChanged) this.logger.info({ workspace, plugin: name, caller }, 'plugin removed');
    return { removed: isChanged };
  }

  @HandleRequest(permitPlugin)
  async permit({ workspace, name, allowed, caller }: Request<typeof permitPlugin>): Promise<KnownPlugin> {
    const before = await this.registry.read(workspace);
    if (!this.viewOf(before, name) && !this.configuredOf(workspace, name)) pluginMissing(name);
    const type = allowed ? 'Allow' : 'Deny';
    const { state, isChanged } = await this.registry.commit(workspace, { type, name, actor: caller });
    if (isChanged)
      this.logger.info({ workspace, plugin: name, allowed, caller }, 'plugin permission changed');
    const configured = this.configuredOf(workspace, name);
    return configured ? configuredView(configured, state) : (this.viewOf(state, name) ?? pluginMissing(name));
  }

  /** Runs the tool without a session. The caller asked for its effects, so they are permitted. */
  @HandleRequest(callPlugin)
  async call({
    workspace,
    name,
    input,
    caller,
  }: Request<typeof callPlugin>): Promise<z.output<typeof callPlugin.reply>> {
    const plugins = this.sandbox.sources.filter(({ kind }) => kind === 'plugin');
    const tool = (await findHostedTool(plugins, workspace, name)) ?? pluginMissing(name);
    const { moduleDigest, timeoutMs = 5_000 } = tool.description;
    const callId = randomUUID();
    const startedAt = performance.now();
    const end = await tool.run({
      request: {
        workspace,
        sessionId: randomUUID(),
        callId,
        idempotencyKey: callId,
        epoch: 1,
        name,
        input: input as never,
      },
      ...{ input: Buffer.from(JSON.stringify(input)), timeoutMs, signal: new AbortController().signal },
      ...{ findObstacle: () => null, begin: () => Promise.resolve() },
    });
    const durationMs = performance.now() - startedAt;
    this.logger.info({ workspace, plugin: name, caller, callId, durationMs }, 'plugin called by a person');
    if (end.end === 'outcome') {
      const { outcome } = end;
      return outcome.outcome === 'completed'
        ? { content: outcome.content, isError: outcome.isError, code: null, moduleDigest, durationMs }
        : { content: outcome.message, isError: true, code: outcome.code, moduleDigest, durationMs };
    }
    const content = end.end === 'unavailable' ? end.message : 'the sandbox stopped during the call';
    return { content, isError: true, code: 'TOOL.UNAVAILABLE', moduleDigest, durationMs };
  }

  /** Returns no added plug-in while the log cannot be read: those of the configuration still run. */
  private async readAdded(workspace: string) {
    try {
      const state = await this.registry.read(workspace);
      return { state, loaded: (await this.sandbox.added?.list(workspace)) ?? [] };
    } catch (error) {
      this.logger.warn({ workspace, err: error }, 'added plugins not listed');
      return { state: { added: new Map(), denied: new Set<string>() } as WorkspacePlugins, loaded: [] };
    }
  }

  /** Plug-ins of the configuration that a workspace sees. */
  private configured(workspace: string): PluginView[] {
    const foreign = this.config.plugins.filter((plugin) => !isVisibleIn(plugin, workspace));
    const hidden = new Set(foreign.map(({ name }) => name));
    return this.sandbox.plugins.filter(({ name }) => !hidden.has(name));
  }

  private configuredOf(workspace: string, name: string): PluginView | undefined {
    return this.configured(workspace).find((view) => view.name === name);
  }

  private viewOf(
    { added, denied }: WorkspacePlugins,
    name: string,
    refusals: ReadonlyMap<
      string | undefined,
      { readonly status: 'missing' | 'rejected'; readonly reason: string }
    > = new Map(),
  ): KnownPlugin | undefined {
    const current = currentVersion(added.get(name));
    if (!current) return undefined;
    const { digest, capabilities, version, actor, at } = current;
    const refusal = refusals.get(digest);
    return {
      ...{ name, kind: 'tool', tools: refusal ? [] : [name], origin: 'added' },
      ...{ status: refusal?.status ?? 'loaded', reason: refusal?.reason ?? null },
      ...{ moduleDigest: digest, capabilities: [...capabilities], allowed: !denied.has(name) },
      ...{ version, addedBy: actor, addedAt: at },
    };
  }

  private requireUnconfigured(workspace: string, name: string): void {
    if (!this.configuredOf(workspace, name)) return;
    throw conflict(
      'PLUGIN.CONFIGURED',
      `the plug-in "${name}" is one of the configuration, which decides about it. What to do: choose another name`,
    );
  }

  private async requireFree(workspace: string, name: string): Promise<void> {
    if (!NATIVE.has(name) && !(await findHostedTool(this.sandbox.sources, workspace, name))) return;
    throw conflict('PLUGIN.NAME_TAKEN', `a tool named "${name}" exists. What to do: choose another name`);
  }
}
