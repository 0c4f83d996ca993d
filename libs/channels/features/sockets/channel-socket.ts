import { readAnswer, valueAt } from '@antiphon/channels-domain';
import type { ChannelConfig } from '@antiphon/config';
import { findJsonExcess, sleep } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { WebSocket } from 'ws';
import type { ChannelPlugin } from '../delivery/channel-plugin.js';
import type { ReceiveDelivery } from '../receive/receive-delivery.handler.js';
import type { Channel, ChannelDirectory } from '../settings/channel-directory.js';
import { DiscordGateway } from './discord-gateway.js';
import { SlackSocket } from './slack-socket.js';
import type { SocketAction, SocketDelivery, SocketProtocol, SocketSession } from './socket-protocol.js';
import { checkSocketUrl } from './socket-url.js';

export interface ChannelSocketDeps {
  readonly directory: ChannelDirectory;
  readonly plugin: ChannelPlugin;
  readonly receive: ReceiveDelivery;
  readonly logger: Logger;
}

const MAX_FRAME_BYTES = 4 * 1024 * 1024;
const HANDSHAKE_MS = 10_000;
/** Silence after which a connection counts as lost, ms. Platforms send pings or heartbeats. */
const SILENCE_MS = 120_000;
const FIRST_DELAY_MS = 1_000;
const MAX_DELAY_MS = 60_000;
/** Delay after a refusal that an operator has to end, ms. */
const FATAL_DELAY_MS = 300_000;

type Socket = NonNullable<Channel['plugin']['description']['socket']>;

interface Ended {
  readonly code: number;
  readonly afterMs: number;
}

/** Closes a connection. A code other than 1000 keeps its session for the resumption. */
const closeSoon = (socket: WebSocket, code: number): void => {
  socket.close(code);
  setTimeout(() => socket.terminate(), 1_000).unref();
};

/** Returns what to do for a frame; null for one that cannot be read. */
const readActions = (data: Buffer, protocol: SocketProtocol): readonly SocketAction[] | null => {
  const text = data.toString('utf8');
  if (findJsonExcess(text) !== null) return null;
  try {
    return protocol.read(JSON.parse(text));
  } catch {
    return null;
  }
};

/** Holds the connection of one channel to its platform, and opens it again after each end. */
export class ChannelSocket {
  private failures = 0;

  constructor(
    private readonly deps: ChannelSocketDeps,
    private readonly config: ChannelConfig,
  ) {}

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const delayMs = await this.connectOnce(signal).catch((error: unknown) => {
        if (signal.aborted) return 0;
        const { logger } = this.deps;
        logger.warn({ err: error, channel: this.config.name }, 'channel socket failed');
        return 0;
      });
      const backoffMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(this.failures++, 10));
      // Many channels must not come back in one moment.
      const waitMs = Math.max(delayMs, backoffMs / 2 + (Math.random() * backoffMs) / 2);
      await sleep(waitMs, signal).catch(() => undefined);
    }
  }

  /** Holds one connection. Returns the delay before the next one, ms. */
  private async connectOnce(signal: AbortSignal): Promise<number> {
    const { directory } = this.deps;
    const channel = await directory.open(this.config);
    const { socket } = channel.plugin.description;
    if (socket === undefined) throw new Error(`the plug-in ${channel.plugin.name} declares no socket`);
    const session = socket.protocol === 'discord' ? await this.readSession() : null;
    const opened = session === null ? await this.open(channel, socket) : { url: session.url, waitMs: 0 };
    if (opened.waitMs > 0) return opened.waitMs;
    const url = checkSocketUrl(opened.url, socket.hosts, this.config.baseUrl);
    if (socket.protocol === 'discord') url.search = '?v=10&encoding=json';
    const token = (await directory.readSecret(this.config, socket.secret)) ?? '';
    const protocol: SocketProtocol =
      socket.protocol === 'slack' ? new SlackSocket() : new DiscordGateway(token, session);
    const { code, afterMs } = await this.hold(channel, url, protocol, signal);
    const { isFatal, isSessionLost } = protocol.ended(code);
    if (isSessionLost && socket.protocol === 'discord') await directory.writeSession(this.config, null);
    if (!isFatal) return afterMs;
    this.deps.logger.error({ channel: this.config.name, code }, 'channel socket refused for good');
    return FATAL_DELAY_MS;
  }

  private async readSession(): Promise<SocketSession | null> {
    const text = await this.deps.directory.readSession(this.config);
    return text === null ? null : (JSON.parse(text) as SocketSession);
  }

  /** Asks the platform for the address of the socket, and for the wait before a new session. */
  private async open(
    channel: Channel,
    { open, url, secret }: Socket,
  ): Promise<{ readonly url: string; readonly waitMs: number }> {
    const request = { ...open, body: '' };
    const end = await this.deps.plugin.request(channel, request, `socket.${this.config.name}`, { secret });
    if (end.outcome !== 'answered') throw new Error(`the platform was not reached: ${end.outcome}`);
    const { ok, error, retry_after } = channel.plugin.description.answer;
    const verdict = readAnswer(end, { ok, error, retry_after });
    if (verdict.kind === 'later' && verdict.afterMs !== null) return { url: '', waitMs: verdict.afterMs };
    if (verdict.kind !== 'sent') throw new Error(`the platform refused the socket: ${verdict.code}`);
    if (findJsonExcess(end.body) !== null) throw new Error('the answer of the platform nests too deeply');
    const body: unknown = JSON.parse(end.body);
    // Discord limits how often a bot identifies, and ends a bot that does so too often.
    const left = valueAt(body, 'session_start_limit.remaining');
    const afterMs = Number(valueAt(body, 'session_start_limit.reset_after'));
    if (left === 0 && afterMs > 0) return { url: '', waitMs: afterMs };
    return { url: String(valueAt(body, url) ?? ''), waitMs: 0 };
  }

  /** Holds a connection until it ends. */
  private hold(channel: Channel, url: URL, protocol: SocketProtocol, signal: AbortSignal): Promise<Ended> {
    const options = { maxPayload: MAX_FRAME_BYTES, handshakeTimeout: HANDSHAKE_MS, followRedirects: false };
    const socket = new WebSocket(url, options);
    return new Promise((resolve) => {
      let afterMs = 0;
      let work = Promise.resolve();
      let beats: NodeJS.Timeout | undefined;
      const stop = (code: number): void => closeSoon(socket, code);
      const onAbort = (): void => stop(4_000);
      const silence = setTimeout(() => socket.terminate(), SILENCE_MS).unref();
      const act = async (action: SocketAction): Promise<void> => {
        switch (action.kind) {
          case 'send':
            return void (socket.readyState === WebSocket.OPEN && socket.send(action.frame));
          case 'ready':
            return void (this.failures = 0);
          case 'heartbeat':
            clearInterval(beats);
            beats = setInterval(() => run(protocol.beat()), action.everyMs).unref();
            return;
          case 'deliver':
            if (socket.readyState !== WebSocket.OPEN) return;
            return this.take(channel, protocol, action.delivery, (frame) => socket.send(frame));
          case 'close':
            afterMs = action.afterMs;
            return stop(4_000);
        }
      };
      // Heartbeats do not wait for messages that are being taken.
      const run = (actions: readonly SocketAction[]): void => {
        for (const action of actions) {
          if (action.kind !== 'deliver') void act(action);
          else
            work = work
              .then(() => act(action))
              .catch((error: unknown) => {
                this.warn(error, 'channel message not taken');
                // The platform sends it again to the next connection.
                stop(4_000);
              });
        }
      };
      socket.on('ping', () => silence.refresh());
      socket.on('message', (data) => {
        silence.refresh();
        const actions = readActions(data as Buffer, protocol);
        if (actions === null) stop(4_000);
        else run(actions);
      });
      socket.on('error', (error) => this.warn(error, 'channel socket error'));
      socket.once('close', (code) => {
        clearTimeout(silence);
        clearInterval(beats);
        signal.removeEventListener('abort', onAbort);
        void work.then(() => resolve({ code, afterMs }));
      });
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  private warn(err: unknown, text: string): void {
    this.deps.logger.warn({ err, channel: this.config.name }, text);
  }

  /** Takes a message, and only then tells the platform so. */
  private async take(
    channel: Channel,
    protocol: SocketProtocol,
    delivery: SocketDelivery,
    send: (frame: string) => void,
  ): Promise<void> {
    const { interaction } = delivery;
    if (interaction !== null) await this.defer(channel, interaction);
    await this.deps.receive.take(channel, Buffer.from(delivery.body, 'utf8'), {
      ...{ headers: { 'content-type': delivery.contentType }, query: {} },
    });
    const session = protocol.taken(delivery);
    if (session !== null) await this.deps.directory.writeSession(this.config, JSON.stringify(session));
    if (delivery.ack !== null) send(delivery.ack);
  }

  /** Shows that the app thinks. A repeated one is refused by the platform, which does no harm. */
  private async defer(
    channel: Channel,
    { id, token }: NonNullable<SocketDelivery['interaction']>,
  ): Promise<void> {
    if (!/^\d{1,30}$/.test(id) || !/^[\w-]{1,2000}$/.test(token)) return;
    const request = {
      ...{ method: 'POST' as const, url: `/interactions/${id}/{reply_secret}/callback` },
      ...{ headers: { 'content-type': 'application/json' }, body: '{"type":5}' },
    };
    await this.deps.plugin.request(channel, request, `interaction.${id}`, { replySecret: token });
  }
}
