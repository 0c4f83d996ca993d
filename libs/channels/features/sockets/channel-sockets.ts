import type { LeaderLoop } from '@antiphon/messaging';
import { ChannelSocket } from './channel-socket.js';
import type { ChannelSocketDeps } from './channel-socket.js';

/** Lease of the process that holds the sockets of channels. */
export const SOCKETS_LEASE = 'agent/channel-sockets';
export const SOCKET_TIMES = { leaseMs: 4_000, pollMs: 500 } as const;

/** Holds the connections of channels with `connection = "socket"`, in one process at a time. */
export class ChannelSockets {
  private readonly stopping = new AbortController();
  private term: AbortController | null = null;
  private held: Promise<unknown> = Promise.resolve();
  private running: Promise<void> = Promise.resolve();

  constructor(private readonly deps: ChannelSocketDeps & { readonly loop: LeaderLoop }) {}

  start(): void {
    const channels = this.deps.directory.all().filter(({ connection }) => connection === 'socket');
    if (channels.length === 0) return;
    this.running = this.deps.loop.run(this.stopping.signal, {
      round: () => {
        if (this.term !== null) return Promise.resolve();
        const term = new AbortController();
        this.term = term;
        this.held = Promise.all(
          channels.map((channel) => new ChannelSocket(this.deps, channel).run(term.signal)),
        );
        return Promise.resolve();
      },
      endTerm: () => this.endTerm(),
      stop: () => this.endTerm(),
    });
  }

  /** Ends the connections, and releases the lease. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private async endTerm(): Promise<void> {
    this.term?.abort(new Error('this process holds the sockets no longer'));
    this.term = null;
    await this.held;
  }
}
