import { causedError } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import { foldCase, isBelow, isVirtualPath, normalizeFolder, normalizePath } from '@antiphon/files-domain';
import { workspaceConfig } from '@antiphon/config';
import type { AntiphonConfig } from '@antiphon/config';
import { forbidden } from '@antiphon/kernel';
import type { z } from 'zod';
import type { AgentDirectory } from '@antiphon/agents-features';
import type { FilesChanged, Files } from '@antiphon/files-features';
import type { NativeCall } from './native-tool.port.js';
import type { FILE_INPUT, FileToolName } from './file-schemas.js';

export type FileInput = { readonly [N in FileToolName]: z.output<(typeof FILE_INPUT)[N]> };

export interface FileAccessDeps {
  readonly settings: AntiphonConfig;
  readonly agents: Pick<AgentDirectory, 'load'>;
  readonly workspaceFiles: Files;
}

/** Folders that an agent may read, and those that it may change. */
export interface FileRoots {
  readonly read: readonly string[];
  readonly write: readonly string[];
  /** True if the agent may read the files of chats. */
  readonly chats: boolean;
}

/** Returns the result of a tool: a line of JSON about it, then its text. */
export const resultOf = (header: object, text = ''): string =>
  text === '' ? JSON.stringify(header) : `${JSON.stringify(header)}\n${text}`;

/** Returns the function that describes a change to the model, and what it has seen by it. */
export const describeWith =
  (isWhole: (path: string) => boolean) =>
  ({ version, files }: FilesChanged): string => {
    const seen = files.flatMap(({ path, digest }) =>
      digest === null ? [] : [{ path, digest, whole: isWhole(path) }],
    );
    const changes = files.map(({ path, before, digest, size }) => ({ path, before, digest, bytes: size }));
    return resultOf({ version, changes, seen });
  };

/** Returns the test whether a path is one of the folders, or below one. */
export const createRootFilter = (roots: readonly string[]): ((path: string) => boolean) => {
  const folders = roots.map(normalizeFolder);
  if (folders.includes('')) return () => true;
  return (path) => folders.some((folder) => isBelow(path, folder));
};

export const isWithin = (roots: readonly string[], path: string): boolean => createRootFilter(roots)(path);

/** Folder of the role files and other state of agents. People change it, agents do not. */
const AGENT_STATE = 'system';

/** Returns true for the folder of the agents' state, what is in it, and folders that have it. */
const hasAgentState = (path: string): boolean => {
  const folded = foldCase(path);
  return isBelow(folded, AGENT_STATE) || isBelow(AGENT_STATE, folded);
};

type Caller = Pick<NativeCall, 'workspace' | 'agentId'>;

const notAllowed = (cause: Cause): Error => causedError(forbidden, 'FILE.NOT_ALLOWED', cause);

/** Finds the tree of a call, and the folders that its agent may use. */
export class FileAccess {
  constructor(private readonly deps: FileAccessDeps) {}

  treeOf({ workspace, sessionId }: Pick<NativeCall, 'workspace' | 'sessionId'>): Promise<string> {
    return this.deps.workspaceFiles.treeIdOf(workspace, sessionId);
  }

  /**
   * Returns a normalised path within the roots of the agent. Throws `FILE.NOT_ALLOWED`, also for a
   * change of the agents' state.
   */
  async allow(call: Caller, use: 'read' | 'write', given: string): Promise<string> {
    const path = normalizePath(given);
    if (use === 'write' && hasAgentState(path))
      throw notAllowed({ kind: 'agent_state_protected', path, folder: AGENT_STATE });
    const { [use]: roots, chats } = await this.rootsOf(call);
    if (use === 'read' && isVirtualPath(path) && !chats)
      throw notAllowed({ kind: 'chats_not_readable', path });
    if (!isWithin(roots, path))
      throw notAllowed({ kind: 'file_outside_roots', path, use, roots: roots.join(', ') });
    return path;
  }

  /** Refuses a move that would make a file readable which the agent may not read where it is. */
  async requireReadable(call: Caller, path: string, to: string): Promise<void> {
    const { read } = await this.rootsOf(call);
    if (!isWithin(read, to) || isWithin(read, path)) return;
    throw notAllowed({ kind: 'move_not_readable', path, to });
  }

  /** The roots are those of the configured agent that the caller derives from. */
  async rootsOf({ workspace, agentId }: Caller): Promise<FileRoots> {
    const agent = await this.deps.agents.load(workspace, agentId);
    const base = agent?.base ?? agentId;
    const configured = workspaceConfig(this.deps.settings, workspace).agents.find(({ id }) => id === base);
    return {
      read: configured?.readRoots ?? [''],
      write: configured?.writeRoots ?? [''],
      chats: configured?.readChats ?? false,
    };
  }
}
