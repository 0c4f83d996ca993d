import { once } from 'node:events';
import { createConnection, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { readJson, writeJsonAtomic } from '@antiphon/bootstrap/files';
import type { HomeLayout } from '@antiphon/bootstrap/project';
import { UserError } from '@antiphon/bootstrap/user-error';

/** Listens on a port for a moment; 0 is any. Returns the port, or null when it is taken. */
const tryPort = (port: number, host: string): Promise<number | null> =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      const { code } = error;
      if (code === 'EADDRINUSE' || code === 'EACCES') resolve(null);
      else if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
        reject(new UserError(`this machine has no address ${host} to listen on (${code})`, { cause: error }));
      else reject(error);
    });
    server.listen({ port, host, exclusive: true }, () => {
      const address = server.address() as AddressInfo | null;
      server.close(() => resolve(address?.port ?? null));
    });
  });

/** Connects to a port on loopback and closes the connection. */
export const connectOnce = async (port: number): Promise<void> => {
  const socket = createConnection({ host: '127.0.0.1', port });
  try {
    await once(socket, 'connect');
  } finally {
    socket.destroy();
  }
};

/**
 * Throws a UserError unless connections to 127.0.0.1 work. In a new network namespace
 * (`unshare -n`) the loopback interface is down, and every engine's start would time out.
 */
export const assertLoopback = async (): Promise<void> => {
  const server = createServer().listen({ port: 0, host: '127.0.0.1' });
  try {
    await once(server, 'listening');
    await connectOnce((server.address() as AddressInfo).port);
  } catch (error) {
    const { code = 'it failed' } = error as NodeJS.ErrnoException;
    throw new UserError(
      `this machine cannot reach itself at 127.0.0.1 (${code}), which engines and services use.\n` +
        'What to do: bring the loopback interface up (`ip link set lo up`), then run this again.',
      { cause: error },
    );
  } finally {
    server.close();
  }
};

export interface Ports {
  /**
   * Chooses a port to listen on. Prefers `preferred` (0 is none), then the home's last port, then
   * any free one.
   */
  pick(name: string, preferred: number, host?: string): Promise<number>;
}

export interface PortsOptions {
  readonly paths: HomeLayout;
  /** Receives a line when a preferred port is taken. */
  readonly note: (line: string) => void;
}

/**
 * Creates a chooser of ports that remembers them in the home, so that a stack mostly keeps its own.
 */
export const createPorts = ({ paths, note }: PortsOptions): Ports => {
  const known = (readJson(paths.portsFile) ?? {}) as Record<string, number>;
  const given = new Set<number>();

  /** Stores the ports for the next start. Without that, on a full disk, it may choose others. */
  const remember = (): void => {
    try {
      writeJsonAtomic(paths.portsFile, known);
    } catch {
      note('the ports could not be stored; the next start may use others');
    }
  };

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
      remember();
      return port;
    },
  };
};

export interface StickyPortOptions {
  readonly ports: Ports;
  readonly name: string;
  /** 0 for any. */
  readonly preferred: number;
  readonly host?: string;
}

/** Port of one process across its restarts. Another is chosen only while no client knows it yet. */
export class StickyPort {
  private port: number | null = null;
  private isSettled = false;

  constructor(private readonly options: StickyPortOptions) {}

  /** Returns the port for the next start. */
  async ensure(): Promise<number> {
    const { ports, name, preferred, host = '127.0.0.1' } = this.options;
    const isUsable = this.port !== null && (this.isSettled || (await tryPort(this.port, host)) !== null);
    if (this.port === null || !isUsable) this.port = await ports.pick(name, preferred, host);
    return this.port;
  }

  /** Returns the current port. Throws before the first `ensure`. */
  current(): number {
    if (this.port === null) throw new Error(`${this.options.name} has no port yet`);
    return this.port;
  }

  /** Fixes the port: from now on clients know it. */
  settle(): void {
    this.isSettled = true;
  }
}
