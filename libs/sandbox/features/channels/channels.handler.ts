import { Controller, Inject } from '@nestjs/common';
import { describeChannel, runChannel, sendChannel, settleSend } from '@antiphon/contracts/sandbox';
import { HandleRequest } from '@antiphon/messaging';
import type { z } from 'zod';
import { SANDBOX } from '../calls/sandbox.js';
import type { Sandbox } from '../calls/sandbox.js';
import { grantedHosts } from '../plugins/capabilities.js';
import { ChannelPlugins } from './channel-plugins.js';
import { ChannelSends } from './channel-sends.js';
import type { SendReply } from './channel-sends.js';
import { fillRequest, hideSecrets } from './fill-request.js';
import { sendRequest } from './send-request.js';

/** Handles `cmd.sandbox.channel.*`: plug-ins read and write, and the host sends. */
@Controller()
export class ChannelHandlers {
  private readonly plugins: ChannelPlugins;

  constructor(
    @Inject(SANDBOX) private readonly sandbox: Sandbox,
    @Inject(ChannelSends) private readonly sends: ChannelSends,
  ) {
    this.plugins = new ChannelPlugins(sandbox);
  }

  @HandleRequest(describeChannel)
  async describe({
    plugin,
  }: z.output<typeof describeChannel.request>): Promise<z.output<typeof describeChannel.reply>> {
    const described = await this.plugins.describe(plugin);
    return described.ok
      ? { found: true, plugin: described.view }
      : { found: false, reason: described.reason };
  }

  @HandleRequest(runChannel)
  async run({
    plugin: name,
    entry,
    input,
    settings,
  }: z.output<typeof runChannel.request>): Promise<z.output<typeof runChannel.reply>> {
    const plugin = this.plugins.find(name);
    if (plugin === null)
      return { outcome: 'failed', code: 'CHANNEL.PLUGIN_MISSING', message: 'the plug-in is not loaded' };
    const run = await this.plugins.run(plugin, entry, Buffer.from(input, 'base64'), settings);
    if (run.outcome === 'completed') return { ...run, moduleDigest: plugin.image.digest };
    this.sandbox.logger.warn({ plugin: name, entry, code: run.code }, 'channel plugin failed');
    return run;
  }

  @HandleRequest(sendChannel)
  async send({
    plugin: name,
    request,
    baseUrl,
    token,
    replySecret,
    idempotencyKey,
    attempt,
  }: z.output<typeof sendChannel.request>): Promise<SendReply> {
    const plugin = this.plugins.find(name);
    const described = await this.plugins.describe(name);
    if (plugin === null || !described.ok)
      return { outcome: 'unreached', reason: 'the plug-in is not loaded' };
    const hosts = grantedHosts(plugin.source.capabilities);
    const declaredUrl = described.view.description.base_url ?? null;
    const filled = fillRequest(request, { hosts, baseUrl, declaredUrl, token, replySecret });
    if (!filled.ok) {
      this.sandbox.logger.warn({ plugin: name, reason: filled.reason }, 'channel request refused');
      return { outcome: 'refused', reason: filled.reason };
    }
    const claim = () =>
      attempt === null ? Promise.resolve(true) : this.sends.claim(attempt.workspace, attempt.key);
    const end = await sendRequest(filled.request, { idempotencyKey, claim }, this.sandbox.egress);
    // An answer may repeat the request.
    const reply =
      end.outcome === 'answered' ? { ...end, body: hideSecrets(end.body, { token, replySecret }) } : end;
    if (attempt !== null) await this.sends.end(attempt.workspace, attempt.key, reply);
    return reply;
  }

  @HandleRequest(settleSend)
  settle({ workspace, key }: z.output<typeof settleSend.request>): Promise<SendReply> {
    return this.sends.settle(workspace, key);
  }
}
