import { Controller, Inject } from '@nestjs/common';
import { describeChannel, runChannel, sendChannel } from '@antiphon/contracts/sandbox';
import { HandleRequest } from '@antiphon/messaging';
import type { z } from 'zod';
import { SANDBOX } from '../calls/sandbox.js';
import type { Sandbox } from '../calls/sandbox.js';
import { grantedHosts } from '../plugins/capabilities.js';
import { ChannelPlugins } from './channel-plugins.js';
import { fillRequest, hideSecrets } from './fill-request.js';
import { sendRequest } from './send-request.js';

type SendReply = z.output<typeof sendChannel.reply>;

/** Handles `cmd.sandbox.channel.*`: plug-ins read and write, and the host sends. */
@Controller()
export class ChannelHandlers {
  private readonly plugins: ChannelPlugins;

  constructor(@Inject(SANDBOX) private readonly sandbox: Sandbox) {
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
    const end = await sendRequest(filled.request, idempotencyKey, this.sandbox.egress);
    // An answer may repeat the request.
    if (end.outcome !== 'answered') return end;
    return { ...end, body: hideSecrets(end.body, { token, replySecret }) };
  }
}
