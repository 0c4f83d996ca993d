import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import type { RouteReply } from '@antiphon/client';
import { sleep } from '@antiphon/kernel';
import { readStack } from '@antiphon/stack/stack-json';
import { homeOf } from '../connection/gateway-address.js';
import type { CommandContext } from '../output.js';

/** Time for a request that began before the new key was in the file to end, ms. */
const SETTLE_MS = 1_000;

const linesOf = (file: string): string[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');

/** Returns the file of master keys if the stack of this home uses it, else null. */
const ownKeyFile = ({ env, cwd }: CommandContext, gateway: string): string | null => {
  const stack = readStack(homeOf(env, cwd));
  const file = stack?.urls.gateways.includes(gateway) ? stack.masterKeyFile : undefined;
  return file !== undefined && existsSync(file) ? file : null;
};

const writeKeys = async (file: string, keys: readonly string[]): Promise<void> => {
  const { writeFileAtomic } = await import('@antiphon/bootstrap/files');
  writeFileAtomic(file, `${keys.join('\n')}\n`);
};

/**
 * Gives stored credentials a new master key. In a home it adds the key to the file, wraps all data
 * keys, and removes the former key. Elsewhere the operator changes the file. A repeat continues
 * after an interruption: a file with two keys belongs to a rotation that did not finish.
 */
export const rotateMaster = async (context: CommandContext): Promise<void> => {
  const { output } = context;
  const gateway = await context.gateway();
  const { rotateMasterKey } = await context.http();
  const file = ownKeyFile(context, gateway.url);
  if (file !== null && linesOf(file).length < 2)
    await writeKeys(file, [randomBytes(32).toString('base64url'), ...linesOf(file)]);
  const rewrapAll = async (): Promise<RouteReply<'rotateMasterKey'>> => {
    for (let total = 0; ;) {
      const reply = await rotateMasterKey();
      total += reply.rewrapped;
      if (reply.remaining === 0 || reply.rewrapped === 0) return { ...reply, rewrapped: total };
    }
  };
  const first = await rewrapAll();
  if (file !== null && first.remaining === 0) {
    await sleep(SETTLE_MS);
    if ((await rewrapAll()).remaining === 0) await writeKeys(file, linesOf(file).slice(0, 1));
  }
  const { masterKeyId, rewrapped, remaining } = first;
  output.result(first, `master key ${masterKeyId}: ${rewrapped} data keys wrapped, ${remaining} remain`);
};
