import { checkRemoval, editBytes, isBelow, requireFile } from '@antiphon/agent-domain';
import type { FileCommand, FileEntry, FileTree } from '@antiphon/agent-domain';
import type { FileCause } from '@antiphon/contracts/agent';
import type { EventStore } from '@antiphon/event-store';
import { conflict, isAppError, rejected } from '@antiphon/kernel';
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

type OneEdit = NonNullable<FileInput['edit']['edits']>[number];

/** A file as a call finds it and as it would leave it. */
interface PlannedFile {
  readonly path: string;
  /** Undefined for a new file. */
  readonly file: FileEntry | undefined;
  readonly before: Uint8Array;
  readonly after: Uint8Array;
}

const ENCODER = new TextEncoder();
/** Codes of bytes that no longer exist. */
const GONE: ReadonlySet<string> = new Set(['FILE.ERASED', 'FILE.NO_BYTES']);
const NO_BYTES = new Uint8Array();

const previewOf = (planned: readonly PlannedFile[]): string =>
  planned
    .map(({ path, file, before, after }) => {
      const from = file ? `a/${path}` : '/dev/null';
      return `--- ${from}\n+++ b/${path}\n${describeChange(before, after)}`;
    })
    .join('\n');

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

  /** Describes what a call would change, for the person who decides on it. Null for other calls. */
  async preview(call: NativeCall, name: string, input: unknown): Promise<string | null> {
    const treeId = await this.access.treeOf(call);
    const read = () => this.deps.files.read(call.workspace, treeId);
    const seen = await this.reads.read(call.workspace, call.sessionId);
    if (name === 'write') {
      const planned = await this.planWrite(call, input as FileInput['write'], seen, await read());
      return previewOf([planned]);
    }
    if (name !== 'edit') return null;
    const edits = await this.editsOf(call, input as FileInput['edit']);
    return previewOf(await this.planEdits(call, edits, seen, await read()));
  }

  private async write(call: NativeCall, input: FileInput['write']): Promise<string> {
    const mode =
      input.executable === undefined ? {} : { mode: input.executable ? (0o755 as const) : (0o644 as const) };
    await this.access.allow(call, 'write', input.path);
    const { digest, size } = await this.deps.files.putBytes(call.workspace, ENCODER.encode(input.content));
    const seen = await this.reads.read(call.workspace, call.sessionId);
    const changed = await this.change(call, async (tree) => {
      const { path, file } = await this.planWrite(call, input, seen, tree, digest);
      return [{ op: 'write', path, digest, size, expect: file?.digest ?? null, ...mode }];
    });
    return this.describe(changed, () => true);
  }

  /** Plans a write on a tree. A file that has the digest already needs no comparison. */
  private async planWrite(
    call: NativeCall,
    { path: given, content, removes }: FileInput['write'],
    seen: ReadonlyMap<string, SeenFile>,
    tree: FileTree,
    digest?: string,
  ): Promise<PlannedFile> {
    const path = await this.access.allow(call, 'write', given);
    const after = ENCODER.encode(content);
    const file = tree.files.get(path);
    if (!file || file.digest === digest) return { path, file, before: NO_BYTES, after };
    await this.checkSeen(call, file, seen.get(path), true);
    const before = await this.deps.files.readBytes(call.workspace, file.digest);
    checkRemoval(path, before, after, removes);
    return { path, file, before, after };
  }

  private async edit(call: NativeCall, input: FileInput['edit']): Promise<string> {
    const edits = await this.editsOf(call, input);
    const seen = await this.reads.read(call.workspace, call.sessionId);
    const changed = await this.change(call, async (tree) => {
      const commands: FileCommand[] = [];
      for (const { path, file, after } of await this.planEdits(call, edits, seen, tree)) {
        const stored = await this.deps.files.putBytes(call.workspace, after);
        commands.push({ op: 'write', path, ...stored, expect: file?.digest ?? null });
      }
      return commands;
    });
    return this.describe(changed, (path) => seen.get(path)?.isWhole ?? false);
  }

  private editsOf(call: NativeCall, input: FileInput['edit']): Promise<OneEdit[]> {
    const { path: onePath = '', old = '', new: text = '', removes } = input;
    const given = input.edits ?? [{ path: onePath, old, new: text, removes }];
    return Promise.all(
      given.map(async (edit) => ({ ...edit, path: await this.access.allow(call, 'write', edit.path) })),
    );
  }

  private async planEdits(
    call: NativeCall,
    edits: readonly OneEdit[],
    seen: ReadonlyMap<string, SeenFile>,
    tree: FileTree,
  ): Promise<PlannedFile[]> {
    const planned: PlannedFile[] = [];
    for (const path of new Set(edits.map((edit) => edit.path))) {
      const file = requireFile(tree, path);
      await this.checkSeen(call, file, seen.get(path), false);
      const before = await this.deps.files.readBytes(call.workspace, file.digest);
      const own = edits.filter((edit) => edit.path === path);
      const after = own.reduce<Uint8Array>((bytes, edit) => editBytes(bytes, edit), before);
      checkRemoval(path, before, after, own.find((edit) => edit.removes !== undefined)?.removes);
      planned.push({ path, file, before, after });
    }
    return planned;
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
      const diff = await this.describeStale(workspace, seen.digest, digest);
      const message = `"${path}" changed after it was read; read it again. The change:\n${diff}`;
      throw conflict('FILE.STALE', message, { data: { path, digest, expected: seen.digest } });
    }
    if (mustBeWhole && !seen.isWhole)
      throw rejected('FILE.UNREAD', `only a part of "${path}" was read; read all of it, or use edit`, {
        data: { path },
      });
  }

  /** Describes the change between two versions, or says that the bytes of one are gone. */
  private async describeStale(workspace: string, before: string, now: string): Promise<string> {
    try {
      const read = (digest: string) => this.deps.files.readBytes(workspace, digest);
      return describeChange(await read(before), await read(now));
    } catch (error) {
      if (!isAppError(error) || !GONE.has(error.code)) throw error;
      return '[the content of one of the versions was erased]';
    }
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
