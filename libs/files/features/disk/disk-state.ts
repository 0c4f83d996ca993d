import { z } from 'zod';
import type { SafeFolder } from './safe-folder.js';
import { digestOfBytes } from './safe-folder.js';

const Version = z.int().nonnegative();
const Content = z.object({
  digest: z.string(),
  size: Version,
  mode: z.union([z.literal(0o644), z.literal(0o755)]),
});
export type DiskContent = z.infer<typeof Content>;

const DiskStateSchema = z.object({
  /** Version of the tree that the folder has. */
  version: Version,
  /** Version that an unfinished round writes; null between rounds. */
  target: Version.nullable(),
  /** Paths that could not be written, with the content that they have instead. */
  pending: z.record(z.string(), Content.nullable()),
  /** True once no file of the folder is executable because a tree has it so. Absent: false. */
  isPlain: z.boolean().optional(),
  /** Paths of the folder and of the tree that are left out, such as unsafe names. Absent: none. */
  leftOut: z.array(z.string()).optional(),
});

/** Progress of a folder. It is stored next to the folder, so that both are lost together. */
export type DiskState = z.infer<typeof DiskStateSchema>;

export const NO_DISK_STATE: DiskState = { version: 0, target: null, pending: {} };
const FILE_MODE = 0o600;

/** Stores the progress of each folder in a file of its own. */
export class DiskStates {
  constructor(private readonly folder: SafeFolder) {}

  /** Returns the progress of a workspace, or that of an empty folder. */
  async read(workspace: string): Promise<DiskState> {
    const file = await this.folder.read(this.nameOf(workspace));
    if (file === null) return NO_DISK_STATE;
    try {
      return DiskStateSchema.parse(JSON.parse(file.bytes.toString('utf8')));
    } catch {
      return NO_DISK_STATE;
    }
  }

  async write(workspace: string, state: DiskState): Promise<void> {
    const name = this.nameOf(workspace);
    const present = await this.folder.read(name);
    const expected = present === null ? null : digestOfBytes(present.bytes);
    await this.folder.write(name, Buffer.from(JSON.stringify(state)), FILE_MODE, expected);
  }

  private nameOf(workspace: string): string {
    return `${workspace}.json`;
  }
}
