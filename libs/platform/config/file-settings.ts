import { z } from 'zod';
import { bool, int, names } from './key-hints.js';

export { Mcp, Tools } from './mcp-settings.js';

/** Schema of a list of folders of the file tree. The folder `.` is the whole tree. */
export const roots = (what: string, example: string) => names(what, /^(?!\/)(?!.*\.\.).{1,1024}$/, example);

/** Quotas of the files of a workspace. */
export const Files = z.strictObject({
  max_file_bytes: int(1, 104_857_600, 'bytes of one file at most', 'max_file_bytes = 16777216').default(
    16 * 1024 * 1024,
  ),
  max_files: int(1, 10_000_000, 'files of a workspace at most', 'max_files = 100000').default(100_000),
  max_bytes: int(1, 2 ** 50, 'bytes of all versions of all files at most', 'max_bytes = 4294967296').default(
    4 * 1024 ** 3,
  ),
  executable_on_disk: bool(
    'true if files of the copy on disk keep their executable bit',
    'executable_on_disk = false',
  ).default(false),
  max_uncited_bytes: int(
    1,
    2 ** 50,
    'bytes of refused or unfinished writes of a workspace at most',
    'max_uncited_bytes = 268435456',
  ).default(256 * 1024 * 1024),
  max_versions: int(1, 2 ** 40, 'changes of files of a workspace at most', 'max_versions = 1000000').default(
    1_000_000,
  ),
});
