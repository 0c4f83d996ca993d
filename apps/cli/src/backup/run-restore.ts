import { existsSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readManifest, restoreDatabase } from '@antiphon/database';
import { beginEpoch, readLogEnd } from '@antiphon/event-store';
import { silentLogger } from '@antiphon/observability';
import { withStoppedHome } from '@antiphon/stack';
import { homeOf } from '../connection/gateway-address.js';
import { archiveFolder, connectOperator, findNats, rootsFile } from '../connection/stack-locations.js';
import type { CommandContext } from '../output.js';
import { lossWindow, renderLoss, witnessInRoots, type LossWindow, type Witness } from './loss-window.js';
import { archivesIn, type BackupFacts } from './run-backup.js';

const MIGRATIONS = fileURLToPath(new URL('../../../../prisma/migrations', import.meta.url));

/** Outcome of deleting JetStream's messages of the replaced log. */
interface DeletedMessages {
  /** `unknown` when no address of NATS is given. */
  readonly messages: 'deleted' | 'none' | 'unknown';
  /** The last event that the stream contained. */
  readonly known: readonly Witness[];
}

interface Restored {
  readonly epoch: number;
  readonly log: BackupFacts['log'];
  readonly loss: LossWindow;
  readonly messages: DeletedMessages['messages'];
}

interface Target {
  readonly url: string;
  deleteMessages(): Promise<DeletedMessages>;
}

/**
 * Deletes the stream `EVENTS` of an external NATS with its consumers: it may contain events that
 * the restored log lacks. The relay creates it again.
 */
const deleteEvents = async (context: CommandContext): Promise<DeletedMessages> => {
  const nats = context.env['ANTIPHON_NATS_URL'] ? findNats(context) : null;
  if (nats === null) return { messages: 'unknown', known: [] };
  const { JETSTREAM_CODES, STREAMS, jetstreamErrorCode, openJetStreamManager } =
    await import('@antiphon/messaging');
  const link = await connectOperator(nats, 'antiphon-restore');
  try {
    const manager = await openJetStreamManager(link.connection);
    const { state } = await manager.streams.info(STREAMS.EVENTS.name);
    await manager.streams.delete(STREAMS.EVENTS.name);
    const at = state.last_seq > 0 ? new Date(state.last_ts).toISOString() : null;
    return { messages: 'deleted', known: [{ where: 'JetStream EVENTS', position: state.last_seq, at }] };
  } catch (error) {
    if (jetstreamErrorCode(error) === JETSTREAM_CODES.streamNotFound) return { messages: 'none', known: [] };
    throw error;
  } finally {
    await link.drain();
  }
};

const copyMissingArchives = async (facts: BackupFacts, from: string, to: string): Promise<void> => {
  if (facts.archives.length > 0) await mkdir(to, { recursive: true, mode: 0o700 });
  for (const { file } of facts.archives)
    if (!existsSync(join(to, file))) await copyFile(join(from, file), join(to, file));
};

const restoreInto = async (context: CommandContext, folder: string, target: Target): Promise<Restored> => {
  const { facts } = await readManifest<BackupFacts>(folder);
  const witnesses: Witness[] = witnessInRoots(rootsFile(context), facts.log.epoch);
  let epoch = 0;
  await copyMissingArchives(facts, archivesIn(folder), archiveFolder(undefined, context));
  await restoreDatabase<BackupFacts>({
    ...{ url: target.url, folder, migrationsDir: MIGRATIONS },
    finish: async (client, old) => {
      const replaced = await readLogEnd(client, old);
      if (replaced) witnesses.push({ where: 'the database that was replaced', ...replaced });
      epoch = await beginEpoch(client, [facts.log.epoch, replaced?.epoch ?? 0]);
    },
  });
  const { messages, known } = await target.deleteMessages();
  return { epoch, log: facts.log, loss: lossWindow(facts.log, [...witnesses, ...known]), messages };
};

/** Restores into the stopped stack of a home. */
const restoreHome = (context: CommandContext, folder: string): Promise<Restored> => {
  const { env, cwd, output } = context;
  return withStoppedHome(
    {
      ...{ home: homeOf(env, cwd), env: { ...env }, logger: silentLogger },
      onProgress: (line) => void (output.json || process.stderr.write(`${line}\n`)),
    },
    ({ databaseUrl, deleteDerivedData }) =>
      restoreInto(context, folder, {
        url: databaseUrl,
        deleteMessages: () => {
          deleteDerivedData();
          return Promise.resolve({ messages: 'deleted', known: [] });
        },
      }),
  );
};

const render = ({ epoch, log, loss, messages }: Restored): string =>
  [
    `restored: the log up to position ${log.position} (${log.at ?? 'empty'}); epoch ${epoch} begins`,
    renderLoss(loss),
    messages === 'unknown'
      ? 'JetStream still has messages of the replaced log. What to do: delete its store (or its stream EVENTS) before any service starts'
      : 'JetStream has no messages of the replaced log; the relay publishes EVENTS again from the log',
    'next: start the stack, then `antiphon audit`',
  ].join('\n');

/** Replaces the database with a backup and prints what is lost. */
export const runRestore = async (context: CommandContext, source: string): Promise<void> => {
  const folder = resolve(context.cwd, source);
  const url = context.env['ANTIPHON_DATABASE_URL'];
  const restored = url
    ? await restoreInto(context, folder, { url, deleteMessages: () => deleteEvents(context) })
    : await restoreHome(context, folder);
  context.output.result(restored, render(restored));
};
