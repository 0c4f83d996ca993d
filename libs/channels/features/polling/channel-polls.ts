import { randomUUID } from 'node:crypto';
import { readAnswer, valueAt } from '@antiphon/channels-domain';
import type { ChannelConfig } from '@antiphon/config';
import { findJsonExcess, sleep } from '@antiphon/kernel';
import type { LeaderLoop } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import type { ChannelPlugin } from '../delivery/channel-plugin.js';
import type { ReceiveDelivery } from '../receive/receive-delivery.handler.js';
import type { Channel, ChannelDirectory } from '../settings/channel-directory.js';

/** Lease of the process that asks platforms for deliveries. */
export const POLLS_LEASE = 'agent/channel-polls';
export const POLL_TIMES = { leaseMs: 4_000, pollMs: 500 } as const;

/** Delay after a poll that failed, ms. */
const RETRY_MS = 2_000;
const MAX_ITEMS = 100;

export interface ChannelPollsDeps {
  readonly loop: LeaderLoop;
  readonly directory: ChannelDirectory;
  readonly plugin: ChannelPlugin;
  readonly receive: ReceiveDelivery;
  readonly logger: Logger;
}

type Poll = NonNullable<Channel['plugin']['description']['poll']>;

/**
 * Asks platforms for the deliveries of channels with `connection = "polling"`, in one process at a
 * time. A platform repeats what it was not asked to go beyond. A repeated delivery adds nothing.
 */
export class ChannelPolls {
  private readonly offsets = new Map<string, number>();
  private readonly failing = new Set<string>();
  private readonly stopping = new AbortController();
  private running: Promise<void> = Promise.resolve();

  constructor(private readonly deps: ChannelPollsDeps) {}

  start(): void {
    const channels = this.deps.directory.all().filter(({ connection }) => connection === 'polling');
    if (channels.length === 0) return;
    const { signal } = this.stopping;
    this.running = this.deps.loop.run(signal, {
      round: async () => {
        await Promise.all(channels.map((channel) => this.pollOnce(channel)));
        return 0;
      },
      endTerm: () => undefined,
      stop: () => Promise.resolve(),
    });
  }

  /** Ends the polls, and releases the lease. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  /** A platform that fails must not hold up the polls of others for long. */
  private async pollOnce(config: ChannelConfig): Promise<void> {
    const { name } = config;
    try {
      await this.poll(await this.deps.directory.open(config));
      this.failing.delete(name);
    } catch (error) {
      if (!this.failing.has(name))
        this.deps.logger.warn({ err: error, channel: name }, 'channel poll failed');
      this.failing.add(name);
      await sleep(RETRY_MS, this.stopping.signal).catch(() => undefined);
    }
  }

  private async poll(channel: Channel): Promise<void> {
    const { poll, answer } = channel.plugin.description;
    if (poll === undefined) throw new Error(`the plug-in ${channel.plugin.name} declares no poll`);
    const offset = this.offsets.get(channel.config.name) ?? 0;
    const url = poll.url.split('{offset}').join(String(offset));
    const request = { method: 'GET' as const, url, headers: {}, body: '' };
    const end = await this.deps.plugin.request(channel, request, `poll.${randomUUID()}`);
    if (end.outcome !== 'answered') throw new Error(`the platform was not reached: ${end.outcome}`);
    // The id of a message is none of a poll.
    const verdict = readAnswer(end, { ok: answer.ok, error: answer.error, retry_after: answer.retry_after });
    if (verdict.kind !== 'sent') throw new Error(`the platform refused the poll: ${verdict.code}`);
    if (findJsonExcess(end.body) !== null) throw new Error('the answer of the platform nests too deeply');
    await this.takeAll(channel, poll, JSON.parse(end.body));
  }

  private async takeAll(channel: Channel, { items, id }: Poll, body: unknown): Promise<void> {
    const found = valueAt(body, items);
    for (const item of Array.isArray(found) ? (found as unknown[]).slice(0, MAX_ITEMS) : []) {
      const bytes = Buffer.from(JSON.stringify(item), 'utf8');
      await this.deps.receive.take(channel, bytes, {
        ...{ headers: { 'content-type': 'application/json' }, query: {} },
      });
      const number = Number(valueAt(item, id));
      // Committed: the next poll tells the platform that it has been taken.
      if (Number.isSafeInteger(number)) this.offsets.set(channel.config.name, number + 1);
    }
  }
}
