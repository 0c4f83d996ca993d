import { workspaceConfig } from '@antiphon/config';
import type { AntiphonConfig, ChannelConfig } from '@antiphon/config';
import { createRouter } from '@antiphon/config';
import type { Router } from '@antiphon/config';
import type { ChannelSecretName } from '@antiphon/contracts/agent';
import { describeChannel } from '@antiphon/contracts/sandbox';
import type { ChannelPluginView, ChannelScheme } from '@antiphon/contracts/sandbox';
import { notFound, transient } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import type { RequestClient } from '@antiphon/messaging';
import type { CredentialStore } from '@antiphon/providers-features';

/** Age up to which a description serves, ms. A module may be replaced at run time. */
const MAX_AGE_MS = 5_000;

export interface ChannelDirectoryDeps {
  readonly config: AntiphonConfig;
  readonly requests: RequestClient;
  readonly credentials: CredentialStore;
  readonly clock: Clock;
}

/** A channel with what its plug-in declares. */
export interface Channel {
  readonly config: ChannelConfig;
  readonly plugin: ChannelPluginView;
  readonly scheme: ChannelScheme;
  /** Whether replies may be responses to deliveries: the platform has no other address. */
  readonly isSynchronous: boolean;
}

type Described = { readonly plugin: ChannelPluginView } | { readonly reason: string };

/** Returns the name under which a secret of a channel is stored. No provider has a colon in it. */
export const secretNameOf = (channel: string, name: ChannelSecretName): string =>
  `channel:${channel}:${name}`;

const replySecretOf = (channel: string, messageId: string): string => `channel:${channel}:reply:${messageId}`;

const sessionNameOf = (channel: string): string => `channel:${channel}:session`;

/** Channels of the configuration, with their plug-ins and secrets. */
export class ChannelDirectory {
  private readonly described = new Map<string, { readonly at: number; readonly found: Promise<Described> }>();
  private readonly routers = new WeakMap<AntiphonConfig, Router>();

  constructor(private readonly deps: ChannelDirectoryDeps) {}

  /** Lists the channels of a workspace. */
  list(workspace: string): readonly ChannelConfig[] {
    return this.deps.config.channels.filter((channel) => channel.workspace === workspace);
  }

  /** Lists the channels of all workspaces. */
  all(): readonly ChannelConfig[] {
    return this.deps.config.channels;
  }

  find(workspace: string, name: string): ChannelConfig | null {
    return this.list(workspace).find((channel) => channel.name === name) ?? null;
  }

  /** Throws `CHANNEL.NOT_FOUND`. */
  require(workspace: string, name: string): ChannelConfig {
    const found = this.find(workspace, name);
    if (found !== null) return found;
    throw notFound(
      'CHANNEL.NOT_FOUND',
      `there is no channel "${name}". What to do: add it to [[channels]] of the configuration`,
    );
  }

  /** Opens a channel. Throws `CHANNEL.UNAVAILABLE` (transient) without its plug-in. */
  async open(config: ChannelConfig): Promise<Channel> {
    const described = await this.describe(config.plugin);
    if ('reason' in described)
      throw transient(
        'CHANNEL.UNAVAILABLE',
        `the plug-in ${config.plugin} cannot be used: ${described.reason}`,
      );
    const { plugin } = described;
    const { schemes, reply_within_ms: within } = plugin.description;
    const scheme = config.scheme ?? schemes[0];
    if (scheme === undefined || !schemes.includes(scheme))
      throw transient(
        'CHANNEL.UNAVAILABLE',
        `the plug-in ${config.plugin} does not know the scheme ${config.scheme}: it has ${schemes.join(', ')}`,
      );
    return { config, plugin, scheme, isSynchronous: within > 0 && config.baseUrl === null };
  }

  /** Returns the agent of a message, by the bindings of the workspace. Empty without an agent. */
  route(workspace: string, key: Parameters<Router['route']>[0]): string {
    const own = workspaceConfig(this.deps.config, workspace);
    const router = this.routers.get(own) ?? createRouter(own.bindings, own.agents[0]?.id ?? '');
    this.routers.set(own, router);
    return router.route(key);
  }

  /** Returns a secret of a channel; null if none is stored. */
  readSecret({ workspace, name }: ChannelConfig, secret: ChannelSecretName): Promise<string | null> {
    return this.deps.credentials.read(workspace, secretNameOf(name, secret));
  }

  /** Keeps the credential of one reply, encrypted, until the reply has ended. */
  async keepReplySecret(channel: ChannelConfig, messageId: string, secret: string): Promise<void> {
    const { workspace, name } = channel;
    await this.deps.credentials.set(workspace, replySecretOf(name, messageId), secret, `channel/${name}`);
  }

  readReplySecret({ workspace, name }: ChannelConfig, messageId: string): Promise<string | null> {
    return this.deps.credentials.read(workspace, replySecretOf(name, messageId));
  }

  /** Removes the credential of a reply, if there is one. */
  async removeReplySecret(channel: ChannelConfig, messageId: string): Promise<void> {
    const { workspace, name } = channel;
    if ((await this.readReplySecret(channel, messageId)) === null) return;
    await this.deps.credentials.remove(workspace, replySecretOf(name, messageId));
  }

  /** Returns the session of the socket of a channel; null without one. */
  readSession({ workspace, name }: ChannelConfig): Promise<string | null> {
    return this.deps.credentials.read(workspace, sessionNameOf(name));
  }

  /** Keeps the session of a socket, encrypted, so that another process resumes it. */
  async writeSession(channel: ChannelConfig, session: string | null): Promise<void> {
    const { workspace, name } = channel;
    if (session !== null)
      await this.deps.credentials.set(workspace, sessionNameOf(name), session, `channel/${name}`);
    else if ((await this.readSession(channel)) !== null)
      await this.deps.credentials.remove(workspace, sessionNameOf(name));
  }

  private describe(plugin: string): Promise<Described> {
    const { clock, requests } = this.deps;
    const now = clock.now();
    const known = this.described.get(plugin);
    if (known && now - known.at < MAX_AGE_MS) return known.found;
    const found = requests
      .request(describeChannel, { plugin })
      .then((reply): Described => (reply.found ? { plugin: reply.plugin } : { reason: reply.reason }));
    this.described.set(plugin, { at: now, found });
    found.catch(() => this.described.delete(plugin));
    return found;
  }
}
