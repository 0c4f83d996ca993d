import type { Ports } from './ports.js';
import { tryPort } from './ports.js';

/** The port of one process over its incarnations. */
export interface StickyPort {
  /** The port to start on now. */
  ensure(): Promise<number>;
  /** The port as it is; throws before the first `ensure`. */
  current(): number;
  /** From now on others know this port: it stays, whoever may have taken it. */
  settle(): void;
}

export interface StickyPortOptions {
  readonly ports: Ports;
  readonly name: string;
  /** 0 for any. */
  readonly preferred: number;
  readonly host?: string;
}

/** A port that is chosen anew only while nobody relies on it yet and somebody else has taken it. */
export const createStickyPort = ({
  ports,
  name,
  preferred,
  host = '127.0.0.1',
}: StickyPortOptions): StickyPort => {
  let port: number | null = null;
  let settled = false;
  return {
    ensure: async () => {
      if (port === null || (!settled && (await tryPort(port, host)) === null))
        port = await ports.pick(name, preferred, host);
      return port;
    },
    current: () => {
      if (port === null) throw new Error(`${name} has no port yet`);
      return port;
    },
    settle: () => void (settled = true),
  };
};
