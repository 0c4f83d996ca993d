import { Controller, Inject } from '@nestjs/common';
import type { AntiphonConfig } from '@antiphon/config';
import { CLOCK, CONFIG, EVENT_STORE } from '@antiphon/service-host';
import { FileTrees } from './file-trees.js';
import { FileTreeEvent, fileTreeStream, rewindFiles, sessionStream } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import type { z } from 'zod';
import { decideFiles, foldFileTree, planRewind } from '@antiphon/files-domain';
import type { FileTree, RewindPlan, VersionedChange } from '@antiphon/files-domain';
import { claimOf } from '@antiphon/event-store';
import type { EventStore } from '@antiphon/event-store';
import { conflict, isAppError, isoTime, notFound, rejected } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { fileTreeIdOf } from '@antiphon/agent-log';

export type RewindRequest = z.output<typeof rewindFiles.request>;
export type RewindReply = z.output<typeof rewindFiles.reply>;

/** Maximum number of plans: another change of the tree between plan and commit needs a new one. */
const MAX_PLANS = 20;
const PAGE = 500;

interface Planned {
  readonly tree: FileTree;
  readonly plan: RewindPlan;
}

/** Ends a commit whose tree changed after the plan. */
class TreeChanged extends Error {}

/** Handles `cmd.agent.file.rewind`. */
@Controller()
export class RewindFiles {
  constructor(
    @Inject(FileTrees) private readonly files: FileTrees,
    @Inject(EVENT_STORE) private readonly store: EventStore,
    @Inject(CONFIG) private readonly config: AntiphonConfig,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  @HandleRequest(rewindFiles)
  async handle(request: RewindRequest): Promise<RewindReply> {
    const treeId = await this.treeIdOf(request);
    const position = await this.positionOf(request);
    for (let round = 0; round < MAX_PLANS; round++) {
      const planned = await this.plan(request, treeId, position);
      const decided = this.decide(request, planned);
      if (request.dryRun) return decided.reply;
      try {
        return await this.commit(request, treeId, planned.tree, decided);
      } catch (error) {
        if (!(error instanceof TreeChanged)) throw error;
      }
    }
    throw conflict('FILE.STALE', 'the files change too fast for a rewind; try again');
  }

  private async commit(
    request: RewindRequest,
    treeId: string,
    planned: FileTree,
    { events, reply }: { events: FileTreeEvent[]; reply: RewindReply },
  ): Promise<RewindReply> {
    const { idempotencyKey: key, actor, workspace, ...requested } = request;
    const idempotency = claimOf(`${actor}/file.rewind`, key, requested, reply);
    const { result } = await this.files.commit(workspace, treeId, (tree) => {
      if (tree.version !== planned.version) throw new TreeChanged();
      return { events, idempotency };
    });
    return result?.outcome === 'joined' ? rewindFiles.reply.parse(result.response) : reply;
  }

  /** Returns the tree that the session changed: a fork has its own from its first change on. */
  private async treeIdOf({ workspace, sessionId }: RewindRequest): Promise<string> {
    const own = fileTreeIdOf(workspace, sessionId);
    const version = await this.store.streamVersion(workspace, fileTreeStream(own));
    return version > 0 ? own : fileTreeIdOf(workspace);
  }

  /** Returns the position of the session's event at the requested version. */
  private async positionOf({ workspace, sessionId, at }: RewindRequest): Promise<number> {
    const options = { fromVersion: Math.max(1, at), limit: 1 };
    const [event] = await this.store.readStream(workspace, sessionStream(sessionId), options);
    if (event) return at === 0 ? 0 : event.position;
    const [first] = await this.store.readStream(workspace, sessionStream(sessionId), { limit: 1 });
    if (!first) throw notFound('SESSION.NOT_FOUND', `there is no session ${sessionId}`);
    throw rejected('SESSION.NO_SUCH_VERSION', `the session has fewer than ${at} events`);
  }

  private async plan(request: RewindRequest, treeId: string, position: number): Promise<Planned> {
    const { files } = this;
    const { workspace, sessionId } = request;
    const tree = await files.read(workspace, treeId);
    const changes = await this.changesAfter(workspace, treeId, position, tree);
    const version = (changes[0]?.version ?? tree.version + 1) - 1;
    const before = await files.read(workspace, treeId, version);
    return { tree, plan: planRewind(sessionId, before, tree, changes) };
  }

  /** Reads the changes of a tree after a position, oldest first. */
  private async changesAfter(
    workspace: string,
    treeId: string,
    position: number,
    tree: FileTree,
  ): Promise<VersionedChange[]> {
    const changes: VersionedChange[] = [];
    const base = tree.base?.version ?? 0;
    for (let beforeVersion = tree.version - base + 1; beforeVersion > 1;) {
      const options = { beforeVersion, limit: PAGE };
      const { events } = await this.files.readFacts(workspace, treeId, options);
      for (const recorded of events) {
        if (recorded.position <= position) return changes.reverse();
        const event = FileTreeEvent.parse(upcast(recorded));
        changes.push({ event, version: recorded.streamVersion + base });
        beforeVersion = recorded.streamVersion;
      }
      if (events.length === 0) break;
    }
    return changes.reverse();
  }

  /** Decides on each path alone: one that cannot be restored does not stop the others. */
  private decide(
    { sessionId, actor }: RewindRequest,
    { tree, plan }: Planned,
  ): { events: FileTreeEvent[]; reply: RewindReply } {
    const { clock, config } = this;
    const context = { at: isoTime(clock), cause: { actor, sessionId }, limits: config.files };
    const events: FileTreeEvent[] = [];
    const files: RewindReply['files'] = [];
    const conflicts: RewindReply['conflicts'] = plan.conflicts.map(
      ({ path, version, actor: by, ...other }) => ({
        ...{ path, version, sessionId: other.sessionId, reason: 'newer_change', detail: by },
      }),
    );
    let now = tree;
    for (const command of plan.commands) {
      const { path, expect = null } = command;
      try {
        const decided = decideFiles(now, [command], context);
        now = foldFileTree(now, decided);
        events.push(...decided);
        const digest = command.op === 'restore' ? command.file.digest : null;
        files.push({ path, change: digest === null ? 'deleted' : 'restored', digest, before: expect });
      } catch (error) {
        if (!isAppError(error) || !error.code.startsWith('FILE.')) throw error;
        conflicts.push({ path, reason: 'refused', detail: error.code, version: null, sessionId: null });
      }
    }
    return { events, reply: { version: now.version, files, conflicts } };
  }
}
