import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { sleep } from '@antiphon/kernel';

export interface FaultyLinkOptions {
  /** Port on loopback; a function chooses one for each connection. */
  readonly targetPort: number | (() => number);
  /** Reads a client's name from its first bytes. Null: not known yet. */
  readonly nameOf?: (firstBytes: string) => string | null;
}

export interface Delay {
  readonly ms: number;
  /** Maximum deviation, ms. */
  readonly jitterMs: number;
}

/** A network between clients and a server on loopback that a spec can cut, slow down and tear. */
export interface FaultyLink {
  readonly port: number;
  /** Returns the number of open connections of a client, or of all clients. */
  connections(name?: string): number;
  /** Holds all data of a client, or of all clients, both ways. The connections stay open. */
  cut(name?: string): void;
  /** Passes the held data on, in order, and ends all cuts. */
  heal(): void;
  /** Delays all data from now on. Null: no delay. */
  delay(delay: Delay | null): void;
  /** Resets connections for which `chosen` returns true. Returns their number. */
  reset(chosen: () => boolean): number;
  /** Resets all connections and stops listening. */
  close(): Promise<void>;
}

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  name: string | null;
  head: string;
}

/** Maximum number of first bytes that are searched for a name. */
const HEAD_BYTES = 4_096;

/** Reads the name, such as `agent`, that a service sends to NATS in its first line. */
export const natsName = (firstBytes: string): string | null =>
  /"name":"([a-z]+)/.exec(firstBytes)?.[1] ?? null;
/**
 * Reads the role of a service from its start-up packet: its user, or the role that it sets after
 * login.
 */
export const postgresName = (firstBytes: string): string | null =>
  /(?:user\0|role=)antiphon_([a-z]+)/.exec(firstBytes)?.[1] ?? null;

const listen = async (server: Server): Promise<number> => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return address !== null && typeof address === 'object' ? address.port : 0;
};

/** Creates the gate at which chunks wait during a cut. */
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

/** Starts a link to a server. Data stays in order both ways, like TCP, through delays and cuts. */
export const createFaultyLink = async (options: FaultyLinkOptions): Promise<FaultyLink> => {
  const { targetPort, nameOf = () => null } = options;
  const pairs = new Set<Pair>();
  const gate = createGate();
  let delay: Delay | null = null;

  const forward = async (pair: Pair, from: Socket, to: Socket): Promise<void> => {
    for await (const chunk of from as AsyncIterable<Buffer>) {
      if (from === pair.client && pair.name === null && pair.head.length < HEAD_BYTES) {
        pair.head += chunk.toString('latin1');
        pair.name = nameOf(pair.head);
      }
      if (delay) await sleep(Math.max(0, delay.ms + (Math.random() * 2 - 1) * delay.jitterMs));
      while (gate.isCut(pair.name)) await gate.healed();
      if (to.destroyed) return void from.destroy();
      if (!to.write(chunk)) await Promise.race([once(to, 'drain'), once(to, 'close')]);
    }
    to.end();
  };

  const server = createServer((client) => {
    const port = typeof targetPort === 'number' ? targetPort : targetPort();
    const pair: Pair = { client, server: connect(port, '127.0.0.1'), name: null, head: '' };
    pairs.add(pair);
    for (const [from, to] of [
      [client, pair.server],
      [pair.server, client],
    ] as const) {
      from.setNoDelay(true);
      from.on('error', () => to.destroy());
      from.on('close', () => to.destroyed && pairs.delete(pair));
      forward(pair, from, to).catch(() => to.destroy());
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
