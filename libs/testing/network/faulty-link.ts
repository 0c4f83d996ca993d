import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface FaultyLinkOptions {
  /** On loopback. */
  readonly targetPort: number;
  /** Finds out from the first bytes that a client sends who it is; null: not yet known. */
  readonly nameOf?: (firstBytes: string) => string | null;
}

export interface Delay {
  readonly ms: number;
  /** More or less by up to this, ms. */
  readonly jitterMs: number;
}

/** A network between clients and a server on loopback that a spec can cut, slow down and tear. */
export interface FaultyLink {
  readonly port: number;
  /** How many connections of this client there are now; of all clients without a name. */
  connections(name?: string): number;
  /** From now on nothing passes for this client (for all, without a name), either way; nobody is told. */
  cut(name?: string): void;
  /** Everything that was held up passes, in its order; new connections too. */
  heal(): void;
  /** What passes comes later from now on; null: at once. */
  delay(delay: Delay | null): void;
  /** Resets connections that `chosen` answers true for; answers how many. */
  reset(chosen: () => boolean): number;
  /** Resets everything and listens no more. */
  close(): Promise<void>;
}

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  name: string | null;
  head: string;
}

/** Enough of what a client says first to know it by. */
const HEAD_BYTES = 4_096;

/** `agent` and the like, as a service names itself to NATS in its first line. */
export const natsName = (firstBytes: string): string | null =>
  /"name":"([a-z]+)/.exec(firstBytes)?.[1] ?? null;
/** The role that a service's start-up packet names: as its user, or as what it takes after logging in. */
export const postgresName = (firstBytes: string): string | null =>
  /(?:user\0|role=)antiphon_([a-z]+)/.exec(firstBytes)?.[1] ?? null;

const listen = async (server: Server): Promise<number> => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return address !== null && typeof address === 'object' ? address.port : 0;
};

/** Where chunks wait while the network is cut. */
const createGate = () => {
  const cut = new Set<string>();
  let all = false;
  let open: () => void = () => undefined;
  let healed = Promise.resolve();
  return {
    isCut: (name: string | null): boolean => all || (name !== null && cut.has(name)),
    healed: (): Promise<void> => healed,
    close: (name: string | undefined): void => {
      if (!all && cut.size === 0) healed = new Promise((resolve) => (open = resolve));
      if (name === undefined) all = true;
      else cut.add(name);
    },
    open: (): void => {
      all = false;
      cut.clear();
      open();
    },
  };
};

/** Starts a link to a server; in order both ways, like TCP, however it is slowed or cut. */
export const createFaultyLink = async (options: FaultyLinkOptions): Promise<FaultyLink> => {
  const { targetPort, nameOf = () => null } = options;
  const pairs = new Set<Pair>();
  const gate = createGate();
  let delay: Delay | null = null;

  const pass = async (pair: Pair, from: Socket, to: Socket): Promise<void> => {
    for await (const chunk of from as AsyncIterable<Buffer>) {
      if (from === pair.client && pair.name === null && pair.head.length < HEAD_BYTES) {
        pair.head += chunk.toString('latin1');
        pair.name = nameOf(pair.head);
      }
      if (delay) await sleep(Math.max(0, delay.ms + (Math.random() * 2 - 1) * delay.jitterMs));
      while (gate.isCut(pair.name)) await gate.healed();
      if (!to.write(chunk)) await Promise.race([once(to, 'drain'), once(to, 'close')]);
    }
    to.end();
  };

  const server = createServer((client) => {
    const pair: Pair = { client, server: connect(targetPort, '127.0.0.1'), name: null, head: '' };
    pairs.add(pair);
    for (const [from, to] of [
      [client, pair.server],
      [pair.server, client],
    ] as const) {
      from.setNoDelay(true);
      from.on('error', () => to.destroy());
      from.on('close', () => pairs.delete(pair));
      pass(pair, from, to).catch(() => to.destroy());
    }
  });
  const reset = (chosen: (pair: Pair) => boolean): number => {
    const hit = [...pairs].filter(chosen);
    for (const pair of hit) {
      pair.client.resetAndDestroy();
      pair.server.destroy();
    }
    return hit.length;
  };

  return {
    port: await listen(server),
    connections: (name) => [...pairs].filter((pair) => name === undefined || pair.name === name).length,
    cut: gate.close,
    heal: gate.open,
    delay: (wanted) => (delay = wanted),
    reset: (chosen) => reset(() => chosen()),
    close: async () => {
      gate.open();
      reset(() => true);
      server.close();
      await once(server, 'close');
    },
  };
};
