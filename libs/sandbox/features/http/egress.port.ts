import { lookup } from 'node:dns/promises';
import { connect as connectPlain } from 'node:net';
import type { Socket } from 'node:net';
import { connect as connectSecure } from 'node:tls';

/** Where a connection goes: an address that was vetted, and the name that the other side is asked to prove. */
export interface DialTarget {
  readonly address: string;
  readonly port: number;
  readonly host: string;
  readonly secure: boolean;
}

/** The way out. Specs put a server of their own behind it; which addresses are allowed is decided before, and is no part of it. */
export interface EgressPorts {
  /** Every address of a name, asked for once. */
  readonly resolve: (host: string) => Promise<readonly string[]>;
  /** Connects to the address itself: no name is looked up again. */
  readonly dial: (target: DialTarget) => Socket;
}

export const systemEgress: EgressPorts = {
  resolve: async (host) => (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address),
  dial: ({ address, port, host, secure }) =>
    secure
      ? connectSecure({ host: address, port, servername: host, ALPNProtocols: ['http/1.1'] })
      : connectPlain({ host: address, port }),
};
