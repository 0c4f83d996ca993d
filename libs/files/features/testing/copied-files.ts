import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger, systemClock } from '@antiphon/observability';
import { createFilesOnDisk } from '../disk/create-files-on-disk.js';
import { WORKSPACE, testConfig, until } from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { SwapRace, secretDigest } from './swap-race.js';
import type { RaceResult, SwappedPart } from './swap-race.js';
import { call, runCalls } from '@antiphon/agent-features/testing/tool-calls';

const TIMES = { leaseMs: 900, pollMs: 5, compareMs: 5, searchMs: 50 };

/** Files of an agent's process with their copy on the disk, as the service keeps it. */
export interface CopiedFiles {
  /** Folder that has the copy, and room for files outside of it. */
  readonly base: string;
  /** Folder of the workspace. */
  readonly root: string;
  /** Stops the copy, deletes all files of the tree, and then the folders. */
  stop(): Promise<void>;
}

export const startCopy = async (world: AgentWorld, agent: TestProcess): Promise<CopiedFiles> => {
  const base = mkdtempSync(join(tmpdir(), 'antiphon-copy-'));
  const folder = join(base, 'files');
  const root = join(folder, WORKSPACE);
  const { files: trees, workspaceFiles } = agent.runtime.services;
  const onDisk = createFilesOnDisk({
    ...{ folder, trees, pool: world.pool, leases: world.leases, clock: systemClock, times: TIMES },
    ...{ logger: silentLogger, owner: base, limits: () => testConfig().files },
  });
  const stopping = new AbortController();
  const ended = onDisk.run(stopping.signal);
  await until(() => onDisk.isLeader() && existsSync(root)).catch((error: unknown) => {
    stopping.abort();
    throw error;
  });
  const stop = async (): Promise<void> => {
    stopping.abort();
    await ended;
    const treeId = await workspaceFiles.treeIdOf(WORKSPACE);
    const request = { workspace: WORKSPACE, treeId, cause: { actor: 'spec' } };
    await workspaceFiles.change(request, (tree) =>
      [...tree.files.keys()].map((path) => ({ op: 'delete', path })),
    );
    rmSync(base, { recursive: true, force: true });
  };
  return { base, root, stop };
};

/** Writes, reads and removes `d/f` by the tools of an agent while a part is exchanged for a link. */
export const raceToolsForOutside = async (
  world: AgentWorld,
  agent: TestProcess,
  { base, root }: CopiedFiles,
  { rounds, part }: { readonly rounds: number; readonly part: SwappedPart },
): Promise<RaceResult> => {
  const race = new SwapRace(base, root, part);
  let [outside, done] = [0, 0];
  try {
    for (let round = 0; round < rounds; round++) {
      const { results } = await runCalls(
        world,
        agent,
        call('write', { path: 'd/f', content: `ours ${round}` }),
        call('read', { path: 'd/f' }),
        call('rm', { path: 'd/f' }),
      );
      done += results.filter((result) => result.startsWith('{')).length;
      if (race.isTouched() || results.some((result) => result.includes('secret'))) outside++;
    }
    const { blobs } = agent.runtime.services;
    outside += (await blobs.sizes(WORKSPACE, [secretDigest])).size;
  } finally {
    await race.stop();
  }
  return { tries: rounds * 3, swaps: race.swaps(), done, outside };
};
