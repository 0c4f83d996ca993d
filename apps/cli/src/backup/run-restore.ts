import { existsSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  adoptDatabase,
  listRestores,
  readManifest,
  restoreDatabase,
  resumeRestore,
  undoRestore,
  withDatabaseTls,
} from '@antiphon/database';
import type { BackupManifest, RestoreOptions, RestoreRecord } from '@antiphon/database';
import { beginEpoch, checkArchiveFile, checkArchiveName, readLogEnd } from '@antiphon/event-store';
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
import {
  appendRestoreRecord,
  checkManifestSignature,
  describeBackup,
  findEvidence,
  findSignedEpoch,
  type RestoreEvidence,
  type SignedRestore,
  verifyRestore,
} from './restore-evidence.js';
import { archivesIn, type BackupFacts } from './run-backup.js';

const MIGRATIONS = fileURLToPath(new URL('../../../../prisma/migrations', import.meta.url));

interface Restored {
  readonly epoch: number;
  readonly signing: {
    /** Number of the signed record of the restore; null where no key signs. */
    readonly record: number | null;
    /** Position up to which a signed root covers the restored log. */
    readonly signedPosition: number | null;
  };
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
  readonly evidence: SignedRestore;
  /** End of the replaced log. */
  readonly replaced: Witness | null;
}

interface Target {
  readonly url: string;
  deleteMessages(): Promise<DeletedMessages>;
}

const copyMissingArchives = async (facts: BackupFacts, from: string, to: string): Promise<void> => {
  if (facts.archives.length > 0) await mkdir(to, { recursive: true, mode: 0o700 });
  for (const { file } of facts.archives) checkArchiveName(file);
  for (const { file, sha256 } of facts.archives) {
    if (existsSync(join(to, file))) continue;
    await checkArchiveFile(join(from, file), Buffer.from(sha256, 'hex'));
    await copyFile(join(from, file), join(to, file));
  }
};

/** Returns the steps of a restore around the database's own. */
const createSteps = (
  { url, deleteMessages }: Target,
  manifest: BackupManifest<BackupFacts>,
  evidence: RestoreEvidence,
): { options: RestoreOptions<Outcome>; deleted: () => DeletedMessages } => {
  let deleted: DeletedMessages = { messages: 'unknown', deadLetters: null, known: [] };
  const options: RestoreOptions<Outcome> = {
    ...{ url, migrationsDir: MIGRATIONS },
    checkManifest: (checked) => checkManifestSignature(checked, evidence),
    finish: async (client, old) => {
      const end = await readLogEnd(client, old);
      const sign = await verifyRestore(client, old, evidence);
      const known = [manifest.facts.log.epoch, end?.epoch ?? 0, await findSignedEpoch(evidence)];
      const epoch = await beginEpoch(client, known);
      const signed = await sign(epoch, describeBackup(manifest), new Date().toISOString());
      return {
        epoch,
        evidence: signed,
        replaced: end && { where: 'the database that was replaced', ...end },
      };
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
  choice: RestoreChoice,
): Promise<Restored> => {
  const manifest = await readManifest<BackupFacts>(folder);
  const { facts } = manifest;
  const evidence = findEvidence(context, choice);
  checkManifestSignature(manifest, evidence);
  const signed = witnessInRoots(rootsFile(context), facts.log.epoch);
  await copyMissingArchives(facts, archivesIn(folder), archiveFolder(undefined, context));
  const { options, deleted } = createSteps(target, manifest, evidence);
  const { outcome, oldSchema } = choice.resume
    ? await resumeRestore<BackupFacts, Outcome>(options)
    : await restoreDatabase<BackupFacts, Outcome>({ ...options, folder });
  // Last, because an interrupted restore may be undone; the signer completes the file otherwise.
  await appendRestoreRecord(evidence.rootsFile, outcome.evidence.record);
  const { messages, deadLetters, known } = deleted();
  // The first of several with one position is named.
  const witnesses = [...(outcome.replaced === null ? [] : [outcome.replaced]), ...signed, ...known];
  const loss = lossWindow(facts.log, witnesses);
  const { record, signedPosition } = outcome.evidence;
  const signing = { record: record?.number ?? null, signedPosition };
  return { epoch: outcome.epoch, signing, log: facts.log, loss, messages, deadLetters, oldSchema };
};

/** Runs `work` with the database of `ANTIPHON_DATABASE_URL`, else of the stopped stack of a home. */
const withTarget = <T>(context: CommandContext, work: (target: Target) => Promise<T>): Promise<T> => {
  const { env, cwd, output } = context;
  const given = env['ANTIPHON_DATABASE_URL'];
  const url = given && withDatabaseTls(given, env);
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

const renderSigning = ({ record, signedPosition }: Restored['signing']): string =>
  [
    signedPosition === null
      ? 'verified: the chain of every event stream; no signed root covers this log'
      : `verified: the chain of every event stream, and the signed roots up to position ${signedPosition}`,
    record === null
      ? 'UNSIGNED: no key signed the record of this restore'
      : `signed: record ${record} says that the new epoch continues this log`,
  ].join('\n');

const render = ({ epoch, signing, log, loss, messages, deadLetters, oldSchema }: Restored): string =>
  [
    `restored: the log up to position ${log.position} (${log.at ?? 'empty'}); epoch ${epoch} begins`,
    renderSigning(signing),
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

const resume = async (context: CommandContext, target: Target, choice: RestoreChoice): Promise<void> => {
  const [newest] = await listRestores(target.url);
  if (newest === undefined) throw invalid('CLI.USAGE', 'no restore of this database was begun');
  const restored = await restoreInto(context, newest.folder, target, choice);
  context.output.result(restored, render(restored));
};

/**
 * Verifies a database that other tools have restored, and begins a new epoch with a signed record:
 * its log may end before the newest root.
 */
const adopt = async (context: CommandContext, target: Target, choice: RestoreChoice): Promise<void> => {
  const evidence = findEvidence(context, choice);
  const adopted = await adoptDatabase(target.url, async (client, schema) => {
    const sign = await verifyRestore(client, schema, evidence);
    const log = await readLogEnd(client);
    if (log === null) throw invalid('CLI.USAGE', 'this database has no log');
    const epoch = await beginEpoch(client, [log.epoch, await findSignedEpoch(evidence)]);
    return { epoch, log, evidence: await sign(epoch, 'adopted by an operator', new Date().toISOString()) };
  });
  await appendRestoreRecord(evidence.rootsFile, adopted.evidence.record);
  const { messages, deadLetters, known } = await target.deleteMessages();
  const signed = witnessInRoots(rootsFile(context), adopted.log.epoch).filter(({ at }) => at !== null);
  const { record, signedPosition } = adopted.evidence;
  const restored: Restored = {
    ...{ epoch: adopted.epoch, log: adopted.log, messages, deadLetters, oldSchema: null },
    signing: { record: record?.number ?? null, signedPosition },
    loss: lossWindow(adopted.log, [...signed, ...known]),
  };
  context.output.result(restored, render(restored));
};

/** Replaces the database with a backup and prints what is lost, or ends an interrupted restore. */
export const runRestore = async (
  context: CommandContext,
  source: string | undefined,
  choice: RestoreChoice,
): Promise<void> => {
  const chosen = [source, choice.resume, choice.undo, choice.list, choice.adopt].filter(Boolean);
  if (chosen.length !== 1)
    throw invalid(
      'CLI.USAGE',
      'name the folder of a backup, or pass one of --resume, --undo, --adopt and --list',
    );
  await withTarget(context, async (target) => {
    if (choice.list) return showRestores(context, target);
    if (choice.undo) return undo(context, target);
    if (choice.adopt) return adopt(context, target, choice);
    if (choice.resume) return resume(context, target, choice);
    const restored = await restoreInto(context, resolve(context.cwd, source ?? ''), target, choice);
    context.output.result(restored, render(restored));
  });
};
