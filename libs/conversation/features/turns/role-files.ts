import { fileTreeStream } from '@antiphon/contracts/agent';
import type { TurnRole } from '@antiphon/contracts/agent';
import type { StreamGuard } from '@antiphon/event-store';
import { streamVersionOf } from '@antiphon/files-domain';
import type { FileTree } from '@antiphon/files-domain';
import { clipText, createBoundedMap, createCoalescer, toStorable } from '@antiphon/kernel';
import type { AgentDirectory } from '@antiphon/agents-features';
import { fileTreeIdOf } from '@antiphon/agent-log';
import type { FileTrees } from '@antiphon/files-features';
import { rolePath, splitRole } from './role-text.js';

/** Maximum length of a role's text in a prompt, UTF-16 units. */
const MAX_ROLE = 100_000;
/** Maximum number of read bytes of a file: the text of a prompt, and the front matter before it. */
const MAX_READ_BYTES = 1024 * 1024;
/** Number of texts that are cached. Their digests name them, so that none gets out of date. */
const MAX_TEXTS = 200;

export interface RoleFilesDeps {
  readonly files: Pick<FileTrees, 'read' | 'readBytes' | 'cached'>;
  readonly agents: Pick<AgentDirectory, 'load'>;
}

/**
 * Files of roles: the prompt of an agent is `system/agents/<id>.md` or `system/agents/<role>.md` of
 * its workspace, where there is one. A turn records the version that it began with.
 */
export class RoleFiles {
  private readonly texts = createBoundedMap<string>(MAX_TEXTS);
  /** Turns that are accepted at the same time share a read, which begins after their request. */
  private readonly readTree: (workspace: string) => Promise<FileTree>;

  constructor(private readonly deps: RoleFilesDeps) {
    this.readTree = createCoalescer((workspace: string) =>
      deps.files.read(workspace, fileTreeIdOf(workspace)),
    );
  }

  /** Returns the newest version of the role's file of an agent; null for an agent without one. */
  async find(workspace: string, agentId: string): Promise<TurnRole | null> {
    return this.roleIn(await this.readTree(workspace), workspace, agentId);
  }

  /**
   * Returns the same by the tree that this process last saw, without a statement. The guard holds
   * while no file of the tree has changed. Null if the tree was not read yet.
   */
  async findCached(
    workspace: string,
    agentId: string,
  ): Promise<{ readonly role: TurnRole | null; readonly guard: StreamGuard } | null> {
    const treeId = fileTreeIdOf(workspace);
    const tree = this.deps.files.cached(workspace, treeId);
    if (tree === null) return null;
    const guard = { streamId: fileTreeStream(treeId), version: streamVersionOf(tree) };
    return { role: await this.roleIn(tree, workspace, agentId), guard };
  }

  private async roleIn({ files }: FileTree, workspace: string, agentId: string): Promise<TurnRole | null> {
    if (files.size === 0) return null;
    const role = (await this.deps.agents.load(workspace, agentId))?.role ?? null;
    const paths = [agentId, ...(role === null ? [] : [role])].map(rolePath);
    const file = paths.map((path) => files.get(path)).find((found) => found !== undefined);
    return file ? { path: file.path, digest: file.digest } : null;
  }

  /** Returns the text of a role at the version that a turn recorded. */
  async read(workspace: string, { digest }: Pick<TurnRole, 'digest'>): Promise<string> {
    const key = `${workspace}\n${digest}`;
    const known = this.texts.get(key);
    if (known !== undefined) return known;
    const bytes = await this.deps.files.readBytes(workspace, digest);
    const { prompt } = splitRole(new TextDecoder().decode(bytes.subarray(0, MAX_READ_BYTES)));
    const text = clipText(toStorable(prompt), MAX_ROLE);
    this.texts.put(key, text);
    return text;
  }
}
