import { causedError } from '@antiphon/contracts/causes';
import type pg from 'pg';
import { checkRemoval, isBelow, requireFile } from '@antiphon/files-domain';
import type { FileCommand, FileEntry, FileTree } from '@antiphon/files-domain';
import type { FileCause } from '@antiphon/contracts/agent';
import type { BlobAppend } from '@antiphon/event-store';
import { conflict, rejected } from '@antiphon/kernel';
import { fileTreeIdOf } from '@antiphon/agent-log';
import { describeInThread, describeStale, APPENDED_BYTES } from '@antiphon/files-features';
import type { FilesChanged, ChangeRecorder } from '@antiphon/files-features';
import { TEXT_DEADLINE_MS } from '@antiphon/service-host/worker-pool';
import { toolJobs } from '../text-work.js';
import type { NativeCall, FileInput, FileToolName } from '@antiphon/conversation-features';
import { FileAccess, describeWith, resultOf } from '@antiphon/conversation-features';
import { restoreCommands } from './restore-commands.js';
import { ReadTools } from './read-tools.js';
import type { ReadToolsDeps } from './read-tools.js';
import { SessionReads } from './session-reads.js';
import type { SeenFile } from './session-reads.js';

type Run = { readonly [N in FileToolName]: (call: NativeCall, input: FileInput[N]) => Promise<string> };

export interface FileToolsDeps extends ReadToolsDeps {
  readonly pool: pg.Pool;
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
const NO_BYTES = new Uint8Array();

const previewOf = async (workspace: string, planned: readonly PlannedFile[]): Promise<string> => {
  const changes = planned.map(async ({ path, file, before, after }) => {
    const from = file ? `a/${path}` : '/dev/null';
    return `--- ${from}\n+++ b/${path}\n${await describeInThread(workspace, before, after)}`;
  });
  return (await Promise.all(changes)).join('\n');
};

/** Commands of a call, and the bytes that they cite. */
interface DecidedFiles {
  readonly commands: readonly FileCommand[];
  readonly blobs: readonly BlobAppend[];
}

/** Runs the tools for files of an agent, over the tree of its session. */
export class FileTools {
  readonly runs: Run;
  private readonly reads: SessionReads;
  private readonly access: FileAccess;

  constructor(private readonly deps: FileToolsDeps) {
    this.reads = new SessionReads(deps.pool);
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
      return previewOf(call.workspace, [planned]);
    }
    if (name !== 'edit') return null;
    const edits = await this.editsOf(call, input as FileInput['edit']);
    return previewOf(call.workspace, await this.planEdits(call, edits, seen, await read()));
  }

  private async write(call: NativeCall, input: FileInput['write']): Promise<string> {
    const mode =
      input.executable === undefined ? {} : { mode: input.executable ? (0o755 as const) : (0o644 as const) };
    await this.access.allow(call, 'write', input.path);
    const bytes = ENCODER.encode(input.content);
    const { stored, blob } = await this.deps.files.stageBytes(call.workspace, bytes);
    const reading = this.readSeen(call);
    return this.change(
      call,
      async (tree) => {
        const { path, file } = await this.planWrite(call, input, await reading, tree, stored.digest);
        const command: FileCommand = {
          ...{ op: 'write', path, ...stored, expect: file?.digest ?? null },
          ...mode,
        };
        return { commands: [command], blobs: blob ? [blob] : [] };
      },
      describeWith(() => true),
    );
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
    const reading = this.readSeen(call);
    let seen: ReadonlyMap<string, SeenFile> = new Map();
    const decide = async (tree: FileTree): Promise<DecidedFiles> => {
      const commands: FileCommand[] = [];
      const blobs: BlobAppend[] = [];
      let room = APPENDED_BYTES;
      seen = await reading;
      for (const { path, file, after } of await this.planEdits(call, edits, seen, tree)) {
        const { stored, blob } = await this.deps.files.stageBytes(call.workspace, after, room);
        if (blob) {
          blobs.push(blob);
          room -= blob.body.byteLength;
        }
        commands.push({ op: 'write', path, ...stored, expect: file?.digest ?? null });
      }
      return { commands, blobs };
    };
    return this.change(
      call,
      decide,
      describeWith((path) => seen.get(path)?.isWhole ?? false),
    );
  }

  /** Reads what the session has seen, while the tree is read. The decision waits for it. */
  private readSeen({ workspace, sessionId }: NativeCall): Promise<ReadonlyMap<string, SeenFile>> {
    const reading = this.reads.read(workspace, sessionId);
    // A change that fails before it decides leaves the promise unread.
    reading.catch(() => undefined);
    return reading;
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
      const removes = own.find((edit) => edit.removes !== undefined)?.removes;
      const input = { path, bytes: new Uint8Array(before), edits: own, removes };
      const work = { name: 'editFile', input, owner: call.workspace, deadlineMs: TEXT_DEADLINE_MS } as const;
      const after = await toolJobs.run(work);
      planned.push({ path, file, before, after });
    }
    return planned;
  }

  private async remove(call: NativeCall, { path: given, files }: FileInput['rm']): Promise<string> {
    const path = await this.access.allow(call, 'write', given);
    const decide = (tree: FileTree): DecidedFiles => {
      const below = [...tree.files.values()].filter((file) => isBelow(file.path, path));
      if (files === undefined && below.length > 0 && !tree.files.has(path)) {
        const size = below.reduce((sum, file) => sum + file.size, 0);
        const data = { path, files: below.length, size };
        throw causedError(rejected, 'FILE.IS_FOLDER', { kind: 'folder_to_confirm', ...data }, data);
      }
      return { commands: [{ op: 'delete', path, files }], blobs: [] };
    };
    const isFork = (await this.access.treeOf(call)) !== fileTreeIdOf(call.workspace);
    return this.change(call, decide, ({ version, files: all }) => {
      const removed = all.map((file) => file.path);
      return resultOf({ version, removed, restore: restoreCommands(call, removed, isFork) });
    });
  }

  private async move(call: NativeCall, input: FileInput['move']): Promise<string> {
    const path = await this.access.allow(call, 'write', input.path);
    const to = await this.access.allow(call, 'write', input.to);
    await this.access.requireReadable(call, path, to);
    const seen = await this.reads.read(call.workspace, call.sessionId);
    return this.change(
      call,
      () => ({ commands: [{ op: 'move', path, to }], blobs: [] }),
      describeWith(() => seen.get(path)?.isWhole ?? false),
    );
  }

  /**
   * Makes a change and returns its result. The facts of the files, their bytes and the outcome of
   * the call are one append. So a call that is recorded as completed has changed the files.
   */
  private async change(
    call: NativeCall,
    decide: (tree: FileTree) => DecidedFiles | Promise<DecidedFiles>,
    describe: (changed: FilesChanged) => string,
  ): Promise<string> {
    const { workspace, sessionId, agentId, turn, callId, recordWith, fence } = call;
    const cause: FileCause = { actor: `agent/${agentId}`, sessionId, turnId: turn.turnId, callId };
    let blobs: readonly BlobAppend[] = [];
    const recorder: ChangeRecorder | undefined = recordWith && {
      append: (stream, changed) => recordWith(describe(changed), { stream, blobs }),
      fence,
    };
    const toCommands = async (tree: FileTree): Promise<readonly FileCommand[]> => {
      const decided = await decide(tree);
      ({ blobs } = decided);
      return decided.commands;
    };
    const request = { workspace, treeId: await this.access.treeOf(call), cause, recorder };
    return describe(await this.deps.workspaceFiles.change(request, toCommands));
  }

  /** Refuses to change a file that the session has not read, or that changed after it did. */
  private async checkSeen(
    { workspace }: NativeCall,
    file: FileEntry,
    seen: SeenFile | undefined,
    mustBeWhole: boolean,
  ): Promise<void> {
    const { path, digest } = file;
    if (!seen) throw causedError(rejected, 'FILE.UNREAD', { kind: 'file_unread', path }, { path, digest });
    if (seen.digest !== digest) {
      const read = (version: string) => this.deps.files.readBytes(workspace, version);
      const diff = await describeStale(workspace, read, seen.digest, digest);
      const data = { path, digest, expected: seen.digest };
      throw causedError(conflict, 'FILE.STALE', { kind: 'file_changed_since', path, diff }, data);
    }
    if (mustBeWhole && !seen.isWhole)
      throw causedError(rejected, 'FILE.UNREAD', { kind: 'file_read_in_part', path }, { path });
  }
}
