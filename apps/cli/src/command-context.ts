import type { Command } from 'commander';
import type { GatewayAddress } from './connection/gateway-address.js';
import type { Output } from './output/print.js';

/** What every command works with. */
export interface CommandContext {
  readonly output: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Looked up only by the commands that talk to it. */
  readonly gateway: () => GatewayAddress;
}

export type ContextOf = (command: Command) => CommandContext;
