import { once } from 'node:events';
import { createConnection, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { readJson, writeJsonAtomic } from '@antiphon/bootstrap/files';
import type { HomeLayout } from '@antiphon/bootstrap/project';
import { UserError } from '@antiphon/bootstrap/user-error';

/** Tells whether this process could listen there now; port 0 asks for any. Resolves to the port, or null when it is taken. */
export const tryPort = (port: number, host: string): Promise<number | null> =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(null);
      else if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND')
        reject(
          new UserError(`this machine has no address ${host} to listen on (${error.code})`, { cause: error }),
        );
      else reject(error);
    });
    server.listen({ port, host, exclusive: true }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : null));
    });
  });

const reach = (port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = createConnection({ host: '127.0.0.1', port });
    socket.once('connect', () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
  });

/**
 * Everything here talks over 127.0.0.1. In a network namespace of its own (`unshare -n`) that interface is down: one can
 * listen there, but nobody gets through, and every engine would be waited for in vain.
 */
export const assertLoopback = async (): Promise<void> => {
  const server = createServer().listen({ port: 0, host: '127.0.0.1' });
  try {
    await once(server, 'listening');
    await reach((server.address() as AddressInfo).port);
  } catch (error) {
    const { code = 'it failed' } = error as NodeJS.ErrnoException;
    throw new UserError(
      `this machine cannot reach itself at 127.0.0.1 (${code}), where all of the stack talks.\n` +
        'What to do: bring the loopback interface up (`ip link set lo up`), then run this again.',
      { cause: error },
    );
  } finally {
    server.close();
  }
};

export interface Ports {
  /**
   * A port to listen on: the preferred one if it is free, else the one that this home had last time, else any free one.
   * 0 prefers none.
   */
  pick(name: string, preferred: number, host?: string): Promise<number>;
}

export interface PortsOptions {
  readonly paths: HomeLayout;
  /** Told when a preferred port was taken. */
  readonly note: (line: string) => void;
}

/** Chooses ports and remembers them in the home, so that a stack mostly keeps its own. */
export const createPorts = ({ paths, note }: PortsOptions): Ports => {
  const known = (readJson(paths.portsFile) ?? {}) as Record<string, number>;
  const given = new Set<number>();

  const firstFree = async (candidates: readonly number[], host: string): Promise<number> => {
    for (const candidate of candidates) {
      if (given.has(candidate)) continue;
      const port = await tryPort(candidate, host);
      if (port !== null && !given.has(port)) return port;
    }
    return firstFree([0], host);
  };

  return {
    pick: async (name, preferred, host = '127.0.0.1') => {
      const candidates = [preferred, known[name] ?? 0].filter((port) => port > 0);
      const port = await firstFree(candidates, host);
      if (preferred > 0 && port !== preferred)
        note(`port ${preferred} is taken; ${name} uses ${port} instead`);
      given.add(port);
      known[name] = port;
      writeJsonAtomic(paths.portsFile, known);
      return port;
    },
  };
};
