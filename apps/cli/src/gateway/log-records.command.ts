import type { Command } from 'commander';
import type { AtOption } from '../connection/gateway-http.js';
import type { CommandContext, ContextOf } from '../output.js';

/** Says that a record of an older version is a claim of its sender. */
const describeProof = (proof: object | undefined): string => (proof === undefined ? ', UNVERIFIED' : '');

type ListOptions = AtOption & { readonly limit: string };

const listAudits = async ({ output, http }: CommandContext, options: ListOptions): Promise<void> => {
  const page = await (await http()).listAudits({ query: options });
  const lines = page.audits.map(({ recordedAt, recordedBy, ok, events, headPosition, first, proof }) => {
    const result = ok ? 'holds' : `broken: ${first?.check ?? ''} ${first?.message ?? ''}`.trimEnd();
    return `${recordedAt}  ${result}  (${events} events up to ${headPosition}, by ${recordedBy}${describeProof(proof)})`;
  });
  const none = 'no audit has been recorded: run antiphon audit --record';
  output.result(page, lines.join('\n') || none);
};

const listBackups = async ({ output, http }: CommandContext, options: ListOptions): Promise<void> => {
  const page = await (await http()).listBackups({ query: options });
  const { backups, restores, head } = page;
  const lines = [
    ...backups.map(({ folder, position, recordedAt, recordedBy, proof }) => {
      const lost = Math.max(0, head - position);
      return `${recordedAt}  ${folder}  (up to ${position}, a restore loses ${lost} events, by ${recordedBy}${describeProof(proof)})`;
    }),
    ...restores.map(({ folder, phase, beganAt }) => `${beganAt}  restore from ${folder}: ${phase}`),
  ];
  const none = 'no backup has been recorded: run antiphon backup FOLDER --record';
  output.result(page, lines.join('\n') || none);
};

/** Adds `antiphon audits` and `antiphon backups`: what was recorded of the log. */
export const addLogRecords = (program: Command, context: ContextOf): void => {
  const add = (
    name: string,
    description: string,
    max: number,
    list: (given: CommandContext, options: ListOptions) => Promise<void>,
  ): void => {
    program
      .command(name)
      .description(description)
      .option('--limit <n>', `maximum number, at most ${max}`, '10')
      .option('--at <position>', 'as of this position of the log (default: now)')
      .addHelpText('after', `\nExamples:\n  antiphon ${name}\n  antiphon ${name} --limit 1 --at 1024 --json`)
      .action((options: ListOptions, command: Command) => list(context(command), options));
  };
  add('audits', 'list recorded results of audits, newest first', 50, listAudits);
  add('backups', 'list recorded backups, newest first, and restores', 50, listBackups);
};
