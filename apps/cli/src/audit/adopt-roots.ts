import { resolve } from 'node:path';
import { adoptRoots, currentOperator } from '@antiphon/event-store';
import { invalid } from '@antiphon/kernel';
import { findSigningKeys } from '../connection/signing-keys.js';
import { rootsFile, withDatabase } from '../connection/stack-locations.js';
import type { CommandContext } from '../output.js';

export interface AdoptCommandOptions {
  readonly reason: string;
  readonly by?: string;
  readonly roots?: string;
  readonly key?: string;
  readonly anyway?: boolean;
}

/** Signs the adoption of the log by this operator, and prints where the roots begin. */
export const runAdopt = async (context: CommandContext, options: AdoptCommandOptions): Promise<void> => {
  const keys = findSigningKeys(options.key, context);
  if (keys === null)
    throw invalid('CLI.USAGE', 'an adoption is signed: name the private key that signs the log with --key');
  const file = options.roots === undefined ? rootsFile(context) : resolve(context.cwd, options.roots);
  const record = await withDatabase(context, { applicationName: 'antiphon-roots', max: 1 }, (pool) =>
    adoptRoots({
      ...{ pool, keys, rootsFile: file, reason: options.reason, isForced: options.anyway === true },
      ...{ actor: options.by ?? currentOperator(), at: new Date().toISOString() },
    }),
  );
  const { number, position, actor, reason } = record;
  context.output.result(
    record,
    `${file}: record ${number}, signed with the key ${record.keyId}\nthe roots begin at position ${position}, adopted by ${actor}: ${reason}\nnext: \`antiphon audit\``,
  );
};
