import { checkRemoval, editBytes, isBelow, requireFile } from '@antiphon/agent-domain';
import type { FileCommand, FileEntry, FileTree } from '@antiphon/agent-domain';
import type { FileCause } from '@antiphon/contracts/agent';
import type { EventStore } from '@antiphon/event-store';
import { conflict, rejected } from '@antiphon/kernel';
import type { FilesChanged } from '../files/files.js';
import type { NativeCall } from './ask-agent.js';
import { describeChange } from './describe-change.js';
import { FileAccess, resultOf } from './file-access.js';
import type { FileInput } from './file-access.js';
import type { FileToolName } from './file-schemas.js';
import { ReadTools } from './read-tools.js';
import type { ReadToolsDeps } from './read-tools.js';
import { SessionReads } from './session-reads.js';
import type { SeenFile } from './session-reads.js';

type Run = { readonly [N in FileToolName]: (call: NativeCall, input: FileInput[N]) => Promise<string> };

export interface FileToolsDeps extends ReadToolsDeps {
  readonly store: EventStore;
}

const ENCODER = new TextEncoder();

/** Runs the tools for files of an agent, over the tree of its session. */
export class FileTools {
  readonly runs: Run;
  private readonly reads: SessionReads;
  private readonly access: FileAccess;

  constructor(private readonly deps: FileToolsDeps) {
    this.reads = new SessionReads(deps.store);
    this.access = new FileAccess(deps);
    const reading = new ReadTools(deps, this.access);
    this.runs = {
      ls: (call, input) => reading.list(call, input),
      read: (call, input) => reading.read(call, input),
      write: (call, input) => this.write(call, input),
      edit: (call, input) => this.edit(call, input),
      rm: (call, input) => this.remove(call, input),
      move: (call, input) => this.move(call, input),
      search: (call, input) => reading.search(call, input),
    };
  }

  private async write(call: NativeCall, input: FileInput['write']): Promise<string> {
    const path = await this.access.allow(call, 'write', input.path);
    const bytes = ENCODER.encode(input.content);
    const mode =
      input.executable === undefined ? {} : { mode: input.executable ? (0o755 as const) : (0o644 as const) };
    const { digest, size } = await this.deps.files.putBytes(call.workspace, bytes);
    const seen = await this.reads.read(call.workspace, call.sessionId);
    const changed = await this.change(call, async (tree) => {
      const now = tree.files.get(path);
      if (now && now.digest !== digest) {
        await this.checkSeen(call, now, seen.get(path), true);
        const before = await this.deps.files.readBytes(call.workspace, now.digest);
        checkRemoval(path, before, bytes, input.removes);
      }
      return [{ op: 'write', path, digest, size, expect: now?.digest ?? null, ...mode }];
    });
    return this.describe(changed, () => true);
  }

  private async edit(call: NativeCall, input: FileInput['edit']): Promise<string> {
    const { path: onePath = '', old = '', new: text = '', removes } = input;
    const given = input.edits ?? [{ path: onePath, old, new: text, removes }];
    const edits = await Promise.all(
      given.map(async (edit) => ({ ...edit, path: await this.access.allow(call, 'write', edit.path) })),
    );
    const seen = await this.reads.read(call.workspace, call.sessionId);
    const changed = await this.change(call, async (tree) => {
      const commands: FileCommand[] = [];
      for (const path of new Set(edits.map((edit) => edit.path))) {
        const file = requireFile(tree, path);
        await this.checkSeen(call, file, seen.get(path), false);
        const before = await this.deps.files.readBytes(call.workspace, file.digest);
        const own = edits.filter((edit) => edit.path === path);
        const after = own.reduce<Uint8Array>((bytes, edit) => editBytes(bytes, edit), before);
        checkRemoval(path, before, after, own.find((edit) => edit.removes !== undefined)?.removes);
        const stored = await this.deps.files.putBytes(call.workspace, after);
        commands.push({ op: 'write', path, ...stored, expect: file.digest });
      }
      return commands;
    });
    return this.describe(changed, (path) => seen.get(path)?.isWhole ?? false);
  }

  private async remove(call: NativeCall, { path: given, files }: FileInput['rm']): Promise<string> {
    const path = await this.access.allow(call, 'write', given);
    const changed = await this.change(call, (tree) => {
      const below = [...tree.files.values()].filter((file) => isBelow(file.path, path));
      if (files === undefined && below.length > 0 && !tree.files.has(path)) {
        const size = below.reduce((sum, file) => sum + file.size, 0);
        const message = `"${path}" is a folder of ${below.length} files and ${size} bytes; to remove it, repeat with "files": ${below.length}`;
        throw rejected('FILE.IS_FOLDER', message, { data: { path, files: below.length, size } });
      }
      return [{ op: 'delete', path, files }];
    });
    const restore = `antiphon files restore --version ${changed.version} ${path}`;
    return resultOf({ version: changed.version, removed: changed.files.map((file) => file.path), restore });
  }

  private async move(call: NativeCall, input: FileInput['move']): Promise<string> {
    const path = await this.access.allow(call, 'write', input.path);
    const to = await this.access.allow(call, 'write', input.to);
    const seen = await this.reads.read(call.workspace, call.sessionId);
    const changed = await this.change(call, () => [{ op: 'move', path, to }]);
    return this.describe(changed, () => seen.get(path)?.isWhole ?? false);
  }

  private async change(
    call: NativeCall,
    toCommands: (tree: FileTree) => readonly FileCommand[] | Promise<readonly FileCommand[]>,
  ): Promise<FilesChanged> {
    const { workspace, sessionId, agentId, turn, callId } = call;
    const cause: FileCause = { actor: `agent/${agentId}`, sessionId, turnId: turn.turnId, callId };
    return this.deps.workspaceFiles.change(
      { workspace, treeId: await this.access.treeOf(call), cause },
      toCommands,
    );
  }

  /** Refuses to change a file that the session has not read, or that changed after it did. */
  private async checkSeen(
    { workspace }: NativeCall,
    file: FileEntry,
    seen: SeenFile | undefined,
    mustBeWhole: boolean,
  ): Promise<void> {
    const { path, digest } = file;
    if (!seen)
      throw rejected('FILE.UNREAD', `"${path}" exists; read it before you change it`, {
        data: { path, digest },
      });
    if (seen.digest !== digest) {
      const [before, now] = await Promise.all(
        [seen.digest, digest].map((one) => this.deps.files.readBytes(workspace, one)),
      );
      const diff = before && now ? describeChange(before, now) : '';
      const message = `"${path}" changed after it was read; read it again. The change:\n${diff}`;
      throw conflict('FILE.STALE', message, { data: { path, digest, expected: seen.digest } });
    }
    if (mustBeWhole && !seen.isWhole)
      throw rejected('FILE.UNREAD', `only a part of "${path}" was read; read all of it, or use edit`, {
        data: { path },
      });
  }

  private async describe(
    { version, files }: FilesChanged,
    isWhole: (path: string) => boolean,
  ): Promise<string> {
    const seen = files.flatMap(({ path, digest }) =>
      digest === null ? [] : [{ path, digest, whole: isWhole(path) }],
    );
    const changes = files.map(({ path, before, digest, size }) => ({ path, before, digest, bytes: size }));
    return Promise.resolve(resultOf({ version, changes, seen }));
  }
}
