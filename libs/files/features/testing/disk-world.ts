import { createHash, randomUUID } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { decideFiles } from '@antiphon/files-domain';
import type { FileCommand, FileLimits, FileTree } from '@antiphon/files-domain';
import type { FileCause } from '@antiphon/contracts/agent';
import { createMemoryEventStore, createMemoryLeaseStore } from '@antiphon/event-store/testing';
import type { Fence } from '@antiphon/event-store';
import { notFound } from '@antiphon/kernel';
import { createLogger, systemClock } from '@antiphon/observability';
import { fileTreeIdOf } from '@antiphon/agent-log/derived-ids';
import { FileTrees } from '../trees/file-trees.js';
import { COPY_MARK } from '../disk/copy-mark.js';
import { DiskStates } from '../disk/disk-state.js';
import { SafeFolder } from '../disk/safe-folder.js';
import { WorkspaceFolder } from '../disk/workspace-folder.js';

export const WORKSPACE = 'default';
export const LIMITS: FileLimits = {
  maxFileBytes: 1_000,
  maxFiles: 100,
  maxBytes: 1_000_000,
  maxVersions: 10_000,
};
/** A file system in memory: fsync costs nothing there. */
const MEMORY = '/dev/shm';
const LEASE = 'files-disk';

/** A file tree in a log in memory, and its folder on the disk. */
export class DiskWorld {
  readonly base = mkdtempSync(join(existsSync(MEMORY) ? MEMORY : tmpdir(), 'antiphon-disk-'));
  readonly root = join(this.base, WORKSPACE);
  readonly leases = createMemoryLeaseStore();
  readonly store = createMemoryEventStore({ leases: this.leases });
  readonly blobs = new Map<string, Uint8Array>();
  readonly trees = this.createTrees();
  readonly treeId = fileTreeIdOf(WORKSPACE);
  private fence: Fence | null = null;
  private opened: (() => Promise<void>)[] = [];

  /** Takes the lease, as the process that follows the folders does. */
  async lead(): Promise<void> {
    const attempt = await this.leases.acquire(WORKSPACE, LEASE, randomUUID(), 600_000);
    this.fence = attempt.acquired ? { lease: LEASE, epoch: attempt.lease.epoch } : this.fence;
  }

  /** Follows the folder as a process that has just started. */
  async startFollower(limits = LIMITS, keepsExecutable = false): Promise<WorkspaceFolder> {
    const states = await SafeFolder.open(
      join(this.base, '.antiphon/state'),
      join(this.base, '.antiphon/partial'),
    );
    const deps = {
      trees: this.createTrees(),
      states: new DiskStates(states),
      ...{ limits, keepsExecutable },
      clock: systemClock,
      logger: createLogger({ service: 'agent', level: 'fatal' }),
      fence: () => this.fence,
    };
    const folder = new WorkspaceFolder(deps, { workspace: WORKSPACE, root: this.root });
    this.opened.push(
      () => folder.close(),
      () => states.close(),
    );
    return folder;
  }

  /** Changes the tree, as a tool or a caller does. */
  async change(commands: readonly FileCommand[], cause: FileCause = { actor: 'local' }): Promise<FileTree> {
    const context = { at: '2026-01-01T00:00:00.000Z', cause, limits: LIMITS };
    const { tree } = await this.trees.commit(WORKSPACE, this.treeId, (now) => ({
      events: decideFiles(now, commands, context),
    }));
    return tree;
  }

  async writeTree(path: string, text: string): Promise<void> {
    const { digest, size } = await this.trees.putBytes(WORKSPACE, Buffer.from(text));
    await this.change([{ op: 'write', path, digest, size }]);
  }

  deleteTree(path: string): Promise<FileTree> {
    return this.change([{ op: 'delete', path }]);
  }

  /** Changes the folder, as another program does. */
  writeDisk(path: string, text: string): void {
    mkdirSync(dirname(join(this.root, path)), { recursive: true });
    writeFileSync(join(this.root, path), text);
  }

  deleteDisk(path: string): void {
    rmSync(join(this.root, path));
  }

  /** Returns the texts of the tree's files by path. */
  async tree(): Promise<Record<string, string>> {
    const { files } = await this.trees.read(WORKSPACE, this.treeId);
    return Object.fromEntries(
      [...files.values()].map(({ path, digest }) => [
        path,
        Buffer.from(this.blobs.get(digest) ?? []).toString(),
      ]),
    );
  }

  /** Returns the texts of the folder's files by path, without the mark of the copy. */
  disk(): Record<string, string> {
    const names = readdirSync(this.root, { recursive: true, withFileTypes: true });
    const files = names
      .filter((name) => name.isFile())
      .map(({ parentPath, name }) => join(parentPath, name))
      .filter((path) => path !== join(this.root, COPY_MARK));
    return Object.fromEntries(
      files.map((path) => [path.slice(this.root.length + 1), readFileSync(path, 'utf8')]),
    );
  }

  /** Returns the types of the tree's facts with their paths, oldest first. */
  async facts(): Promise<string[]> {
    const events = await this.store.readStream(WORKSPACE, `file-tree-${this.treeId}`);
    return events.map(({ type, data }) => `${type} ${String(data['path'])}`);
  }

  async close(): Promise<void> {
    for (const close of this.opened) await close().catch(() => undefined);
    rmSync(this.base, { recursive: true, force: true });
  }

  private createTrees(): FileTrees {
    const { blobs } = this;
    return new FileTrees({
      store: this.store,
      ids: { next: randomUUID },
      snapshots: { read: () => Promise.resolve(null), write: () => Promise.resolve() },
      blobs: {
        put: async (_, bytes) => {
          const digest = createHash('sha256').update(bytes).digest('hex');
          blobs.set(digest, Buffer.from(bytes));
          return { digest, size: bytes.length };
        },
        erasedOf: () => Promise.resolve(new Set()),
        read: async (_, digest) => {
          const bytes = blobs.get(digest);
          if (!bytes) throw notFound('FILE.NO_BYTES', 'not stored');
          return bytes;
        },
      },
    });
  }
}
