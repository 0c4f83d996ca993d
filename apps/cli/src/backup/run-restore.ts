import { existsSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { listRestores, readManifest, restoreDatabase, resumeRestore, undoRestore } from '@antiphon/database';
import type { RestoreOptions, RestoreRecord } from '@antiphon/database';
import { beginEpoch, readLogEnd } from '@antiphon/event-store';
import { invalid } from '@antiphon/kernel';
import { silentLogger } from '@antiphon/observability';
import { withStoppedHome } from '@antiphon/stack';
import { homeOf } from '../connection/gateway-address.js';
import { archiveFolder, rootsFile } from '../connection/stack-locations.js';
import type { CommandContext } from '../output.js';
import type { RestoreChoice } from './backup.command.js';
import { deleteMessages } from './delete-messages.js';
import type { DeletedMessages } from './delete-messages.js';
import { lossWindow, renderLoss, witnessInRoots, type LossWindow, type Witness } from './loss-window.js';
import { archivesIn, type BackupFacts } from './run-backup.js';

const MIGRATIONS = fileURLToPath(new URL('../../../../prisma/migrations', import.meta.url));

interface Restored {
  readonly epoch: number;
  readonly log: BackupFacts['log'];
  readonly loss: LossWindow;
  readonly messages: DeletedMessages['messages'];
  readonly deadLetters: DeletedMessages['deadLetters'];
  /** Schema with the replaced data; null for an empty database. */
  readonly oldSchema: string | null;
}

/** Facts that a resumed restore needs again; they are stored with the marker. */
interface Outcome {
  readonly epoch: number;
  /** End of the replaced log. */
  readonly replaced: Witness | null;
}

interface Target {
  readonly url: string;
  deleteMessages(): Promise<DeletedMessages>;
}

const copyMissingArchives = async (facts: BackupFacts, from: string, to: string): Promise<void> => {
  if (facts.archives.length > 0) await mkdir(to, { recursive: true, mode: 0o700 });
  for (const { file } of facts.archives)
    if (!existsSync(join(to, file))) await copyFile(join(from, file), join(to, file));
};

/** Returns the steps of a restore around the database's own. */
const createSteps = (
  { url, deleteMessages }: Target,
  facts: BackupFacts,
): { options: RestoreOptions<Outcome>; deleted: () => DeletedMessages } => {
  let deleted: DeletedMessages = { messages: 'unknown', deadLetters: null, known: [] };
  const options: RestoreOptions<Outcome> = {
    ...{ url, migrationsDir: MIGRATIONS },
    finish: async (client, old) => {
      const end = await readLogEnd(client, old);
      const epoch = await beginEpoch(client, [facts.log.epoch, end?.epoch ?? 0]);
      return { epoch, replaced: end && { where: 'the database that was replaced', ...end } };
    },
    deleteDerived: async () => {
      deleted = await deleteMessages();
    },
  };
  return { options, deleted: () => deleted };
};

const restoreInto = async (
  context: CommandContext,
  folder: string,
  target: Target,
  isResumed: boolean,
): Promise<Restored> => {
  const { facts } = await readManifest<BackupFacts>(folder);
  const signed = witnessInRoots(rootsFile(context), facts.log.epoch);
  await copyMissingArchives(facts, archivesIn(folder), archiveFolder(undefined, context));
  const { options, deleted } = createSteps(target, facts);
  const { outcome, oldSchema } = isResumed
    ? await resumeRestore<BackupFacts, Outcome>(options)
    : await restoreDatabase<BackupFacts, Outcome>({ ...options, folder });
  const { messages, deadLetters, known } = deleted();
  const witnesses = [...signed, ...(outcome.replaced === null ? [] : [outcome.replaced]), ...known];
  const loss = lossWindow(facts.log, witnesses);
  return { epoch: outcome.epoch, log: facts.log, loss, messages, deadLetters, oldSchema };
};

/** Runs `work` with the database of `ANTIPHON_DATABASE_URL`, else of the stopped stack of a home. */
const withTarget = <T>(context: CommandContext, work: (target: Target) => Promise<T>): Promise<T> => {
  const { env, cwd, output } = context;
  const url = env['ANTIPHON_DATABASE_URL'];
  if (url) return work({ url, deleteMessages: () => deleteMessages(context) });
  return withStoppedHome(
    {
      ...{ home: homeOf(env, cwd), env: { ...env }, logger: silentLogger, duringRestore: true },
      onProgress: (line) => void (output.json || process.stderr.write(`${line}\n`)),
    },
    ({ databaseUrl, deleteDerivedData }) =>
      work({
        url: databaseUrl,
        deleteMessages: () => {
          deleteDerivedData();
          return Promise.resolve({ messages: 'deleted', deadLetters: null, known: [] });
        },
      }),
  );
};

const render = ({ epoch, log, loss, messages, deadLetters, oldSchema }: Restored): string =>
  [
    `restored: the log up to position ${log.position} (${log.at ?? 'empty'}); epoch ${epoch} begins`,
    renderLoss(loss),
    messages === 'unknown'
      ? 'JetStream still has messages of the replaced log. What to do: delete its store (or its stream EVENTS) before any service starts'
      : 'JetStream has no messages of the replaced log; the relay publishes EVENTS again from the log',
    ...(deadLetters ? [`${deadLetters} dead letters of events were deleted`] : []),
    ...(oldSchema === null ? [] : [`the replaced data stays in the schema ${oldSchema}`]),
    'next: start the stack, then `antiphon audit`',
  ].join('\n');

const renderRecord = ({ phase, beganAt, folder, oldSchema }: RestoreRecord): string =>
  `${beganAt}  ${phase}  ${folder}  ${oldSchema}`;

const showRestores = async (context: CommandContext, { url }: Target): Promise<void> => {
  const restores = await listRestores(url);
  const lines = restores.map(renderRecord);
  context.output.result({ restores }, lines.length === 0 ? 'no restores' : lines.join('\n'));
};

const undo = async (context: CommandContext, { url }: Target): Promise<void> => {
  const undone = await undoRestore(url);
  context.output.result({ undone }, 'undone: the database has the data before the restore; start the stack');
};

const resume = async (context: CommandContext, target: Target): Promise<void> => {
  const [newest] = await listRestores(target.url);
  if (newest === undefined) throw invalid('CLI.USAGE', 'no restore of this database was begun');
  const restored = await restoreInto(context, newest.folder, target, true);
  context.output.result(restored, render(restored));
};

/** Replaces the database with a backup and prints what is lost, or ends an interrupted restore. */
export const runRestore = async (
  context: CommandContext,
  source: string | undefined,
  choice: RestoreChoice,
): Promise<void> => {
  const chosen = [source, choice.resume, choice.undo, choice.list].filter(Boolean);
  if (chosen.length !== 1)
    throw invalid('CLI.USAGE', 'name the folder of a backup, or pass one of --resume, --undo and --list');
  await withTarget(context, async (target) => {
    if (choice.list) return showRestores(context, target);
    if (choice.undo) return undo(context, target);
    if (choice.resume) return resume(context, target);
    const restored = await restoreInto(context, resolve(context.cwd, source ?? ''), target, false);
    context.output.result(restored, render(restored));
  });
};
