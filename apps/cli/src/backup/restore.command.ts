import { existsSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readManifest, restoreDatabase } from '@antiphon/database';
import { beginEpoch, readLogEnd } from '@antiphon/event-store';
import { silentLogger } from '@antiphon/observability';
import { withHomeAtRest } from '@antiphon/stack';
import type { Command } from 'commander';
import type { CommandContext, ContextOf } from '../command-context.js';
import { homeOf } from '../connection/gateway-address.js';
import { archiveFolder } from '../events/archive.command.js';
import { archivesIn } from './backup.command.js';
import type { BackupFacts } from './backup.command.js';
import { forgetEvents } from './forget-events.js';
import { lossWindow, renderLoss, witnessInRoots } from './loss-window.js';
import type { LossWindow, Witness } from './loss-window.js';

const MIGRATIONS = fileURLToPath(new URL('../../../../prisma/migrations', import.meta.url));

interface Restored {
  readonly epoch: number;
  readonly log: BackupFacts['log'];
  readonly loss: LossWindow;
  /** What became of the messages that NATS keeps. */
  readonly messages: 'deleted' | 'none' | 'unknown';
}

interface Target {
  readonly url: string;
  /** Deletes what NATS keeps of the other history; `known`: the last that it had of the log. */
  forget(): Promise<{ readonly messages: Restored['messages']; readonly known: readonly Witness[] }>;
}

const putArchivesBack = async (facts: BackupFacts, from: string, to: string): Promise<void> => {
  if (facts.archives.length > 0) await mkdir(to, { recursive: true, mode: 0o700 });
  for (const { file } of facts.archives)
    if (!existsSync(join(to, file))) await copyFile(join(from, file), join(to, file));
};

const rootsFile = ({ env, cwd }: CommandContext): string =>
  (env['ANTIPHON_LOG_ROOTS_FILE'] || undefined) ?? join(homeOf(env, cwd), 'log-roots.jsonl');

const restoreInto = async (context: CommandContext, folder: string, target: Target): Promise<Restored> => {
  const { facts } = await readManifest<BackupFacts>(folder);
  const witnesses: Witness[] = witnessInRoots(rootsFile(context), facts.log.epoch);
  let epoch = 0;
  await putArchivesBack(facts, archivesIn(folder), archiveFolder({}, context));
  await restoreDatabase<BackupFacts>({
    ...{ url: target.url, folder, migrationsDir: MIGRATIONS },
    finish: async (client, old) => {
      const replaced = await readLogEnd(client, old);
      if (replaced) witnesses.push({ where: 'the database that was replaced', ...replaced });
      epoch = await beginEpoch(client, [facts.log.epoch, replaced?.epoch ?? 0]);
    },
  });
  const { messages, known } = await target.forget();
  return { epoch, log: facts.log, loss: lossWindow(facts.log, [...witnesses, ...known]), messages };
};

const render = ({ epoch, log, loss, messages }: Restored): string =>
  [
    `restored: the log up to position ${log.position} (${log.at ?? 'empty'}); it begins epoch ${epoch}`,
    renderLoss(loss),
    messages === 'unknown'
      ? "NATS was not asked. What to do: delete JetStream's store (or its stream EVENTS) before any service starts"
      : 'messages of the other history are gone; EVENTS is made again from the log',
    'next: start the stack, then `antiphon audit`',
  ].join('\n');

const restore = async (context: CommandContext, source: string): Promise<void> => {
  const { env, cwd, output } = context;
  const folder = resolve(cwd, source);
  const url = env['ANTIPHON_DATABASE_URL'];
  const restored = url
    ? await restoreInto(context, folder, { url, forget: () => forgetEvents(env, cwd) })
    : await withHomeAtRest(
        {
          ...{ home: homeOf(env, cwd), env: { ...env }, logger: silentLogger },
          onProgress: (line) => void (output.json || process.stderr.write(`${line}\n`)),
        },
        ({ databaseUrl, forgetOthers }) =>
          restoreInto(context, folder, {
            url: databaseUrl,
            forget: () => {
              forgetOthers();
              return Promise.resolve({ messages: 'deleted', known: [] });
            },
          }),
      );
  output.result(restored, render(restored));
};

/** `antiphon restore DIR` */
export const addRestore = (program: Command, context: ContextOf): void => {
  program
    .command('restore <folder>')
    .description(
      'replace the whole database by a backup; says what is lost, and begins a new epoch of the log',
    )
    .addHelpText(
      'after',
      [
        '\nStop the stack first. Where PostgreSQL is not ours (ANTIPHON_DATABASE_URL), stop every service; with ANTIPHON_NATS_URL',
        'and ANTIPHON_OPERATOR_NATS_PASSWORD its stream EVENTS is deleted too. If anything fails, the database is as it was.',
        '\nExamples:',
        '  antiphon down && antiphon restore /mnt/backups/2026-11-21 && antiphon up --detach && antiphon audit',
        '  antiphon restore /mnt/backups/2026-11-21 --json | jq .loss',
      ].join('\n'),
    )
    .action((folder: string, _options: object, command: Command) => restore(context(command), folder));
};
